"""Documents come in while processes are killed; afterwards nothing may be lost, doubled or stuck."""
