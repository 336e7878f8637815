"""`python -m services.cli`, how a node starts its role processes."""

from services.cli import main

main()
