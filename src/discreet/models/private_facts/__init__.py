"""Facts that are chosen from the data with noise, for a price, so that a promise need not assume them."""
