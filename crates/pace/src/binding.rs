//! The limit that currently determines how fast a pool sends, for status displays.

use crate::Dimension;
use std::fmt;

/// The limit that currently determines how fast a pool sends.
///
/// ```
/// use bakeoff_pace::BindingLimit;
///
/// assert_eq!(BindingLimit::Cap(30).to_string(), "cap 30");
/// assert_eq!(BindingLimit::Window { requests: 37, seconds: 7.0 }.to_string(), "37 per 7 s");
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum BindingLimit {
    /// A rate per second that the provider reports in headers.
    HeaderRate(Dimension, f64),
    /// Requests per second, measured from rejections.
    MeasuredRate(f64),
    /// Requests per window of fixed length.
    Window {
        /// Requests per window.
        requests: u64,
        /// Length in seconds.
        seconds: f64,
    },
    /// A maximum number of requests in flight, measured from rejections.
    Cap(u32),
    /// The number of requests in flight above which the provider only becomes slower.
    Saturation(u32),
    /// Requests per second that an earlier run has measured.
    RememberedRate(f64),
    /// A maximum number of requests in flight that an earlier run has measured.
    RememberedCap(u32),
    /// An amount per minute that the user has configured.
    ConfiguredRate(Dimension, u64),
    /// A maximum number of requests in flight that the user has configured, or the default.
    ConfiguredCap(u32),
    /// No limit has been found yet.
    Growing,
}

impl BindingLimit {
    /// Whether it is a limit of the provider that this run has found.
    pub fn is_found(self) -> bool {
        match self {
            BindingLimit::HeaderRate(..)
            | BindingLimit::MeasuredRate(_)
            | BindingLimit::Window { .. }
            | BindingLimit::Cap(_)
            | BindingLimit::Saturation(_) => true,
            BindingLimit::RememberedRate(_)
            | BindingLimit::RememberedCap(_)
            | BindingLimit::ConfiguredRate(..)
            | BindingLimit::ConfiguredCap(_)
            | BindingLimit::Growing => false,
        }
    }
}

fn unit(dimension: Dimension) -> &'static str {
    match dimension {
        Dimension::Requests => "requests",
        Dimension::Tokens => "tokens",
        Dimension::InputTokens => "input tokens",
        Dimension::OutputTokens => "output tokens",
    }
}

impl fmt::Display for BindingLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            BindingLimit::HeaderRate(Dimension::Requests, rate) => {
                write!(f, "{rate:.1}/s (headers)")
            }
            BindingLimit::HeaderRate(dimension, rate) => {
                write!(f, "{rate:.0} {}/s (headers)", unit(dimension))
            }
            BindingLimit::MeasuredRate(rate) => write!(f, "{rate:.1}/s (measured)"),
            BindingLimit::Window { requests, seconds } => {
                let seconds = (seconds * 10.0).round() / 10.0;
                write!(f, "{requests} per {seconds} s")
            }
            BindingLimit::Cap(width) => write!(f, "cap {width}"),
            BindingLimit::Saturation(level) => write!(f, "server saturates at ~{level}"),
            BindingLimit::RememberedRate(rate) => write!(f, "{rate:.1}/s (earlier run)"),
            BindingLimit::RememberedCap(width) => write!(f, "cap {width} (earlier run)"),
            BindingLimit::ConfiguredRate(dimension, limit) => {
                write!(f, "{limit} {}/min (configured)", unit(dimension))
            }
            BindingLimit::ConfiguredCap(width) => write!(f, "max {width} in flight (configured)"),
            BindingLimit::Growing => f.write_str("still growing"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_limit_has_a_short_description() {
        use BindingLimit as B;
        use Dimension as D;
        for (limit, expected) in [
            (B::HeaderRate(D::Requests, 5.0), "5.0/s (headers)"),
            (B::HeaderRate(D::InputTokens, 400.4), "400 input tokens/s (headers)"),
            (B::MeasuredRate(5.04), "5.0/s (measured)"),
            (B::Window { requests: 37, seconds: 7.0 }, "37 per 7 s"),
            (B::Window { requests: 8, seconds: 1.4 }, "8 per 1.4 s"),
            (B::Cap(30), "cap 30"),
            (B::Saturation(400), "server saturates at ~400"),
            (B::ConfiguredRate(D::Requests, 300), "300 requests/min (configured)"),
            (B::ConfiguredCap(400), "max 400 in flight (configured)"),
            (B::Growing, "still growing"),
        ] {
            assert_eq!(limit.to_string(), expected);
        }
    }
}
