"""The chunker service: normalised text in, chunks with exact spans out."""
