"""The living state of documents: what is known of them, folded into one timeline per revision."""
