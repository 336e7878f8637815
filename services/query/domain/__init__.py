"""Pure decisions of the query service: values in, values out."""
