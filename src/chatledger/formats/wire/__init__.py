"""What every format uses to read and write JSON."""
