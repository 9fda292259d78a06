"""The programs behind `python -m minigrad`."""
