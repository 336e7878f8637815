"""Between the contracts (protobuf, receipts, bundles, packs) and the domain."""
