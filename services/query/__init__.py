"""Query: both lanes side by side, fusion, admission, extractive answers with exact spans."""
