"""What every room builds on: captions, errors, progress, signatures, types."""
