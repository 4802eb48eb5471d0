//! Panics of code that the user of the crate supplies.

use std::any::Any;
use std::panic::AssertUnwindSafe;

/// Runs a function; the error is the message of its panic.
pub(crate) fn catch<T>(function: impl FnOnce() -> T) -> Result<T, String> {
    std::panic::catch_unwind(AssertUnwindSafe(function)).map_err(|panic| message(&*panic))
}

/// Returns the message of a panic.
pub(crate) fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("no message").to_owned()
}
