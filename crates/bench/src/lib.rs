//! How fast are we, beside the alternatives?
