"""Between protobuf and domain values: pure."""
