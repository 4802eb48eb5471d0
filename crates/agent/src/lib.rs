//! How does one agent work on one task? External programs as targets.
