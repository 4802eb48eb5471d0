//! How do people look at it? Tables and other views of a summary.
