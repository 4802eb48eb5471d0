//! How do I make one call to one model? Wire formats, errors, prices, cache and the client.
