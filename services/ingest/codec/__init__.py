"""Protobuf and CloudEvents JSON on one side, values of the domain on the other; pure."""
