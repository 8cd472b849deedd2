"""`python -m smoothcde`, which is also how torchrun starts a fit in several processes."""

from smoothcde.cli import app

app(prog_name="smoothcde")
