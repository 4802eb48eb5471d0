//! How sure are we? Pure statistical functions, each with its source.
