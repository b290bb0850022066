"""Means, sums and variances of too little."""
