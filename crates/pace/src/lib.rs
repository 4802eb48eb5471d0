//! When may this request go out?
//!
//! Pools and permits, the retry policy, and the reading of what providers say about waiting. No
//! HTTP here, and time is passed in.

mod hint;

pub use hint::retry_after;
