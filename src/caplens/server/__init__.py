"""`caplens serve`: a page to try captions, browse and compare runs, and collect ratings, with an API behind it."""
