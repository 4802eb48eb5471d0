//! Settings of a profile for random faults.

use crate::Fault;
use crate::number::share;
use serde::Deserialize;

/// Shares of the admitted requests that end in a fault. Each request is an independent draw, also if
/// it repeats another one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Faults {
    /// The connection is reset without a response.
    #[serde(deserialize_with = "share")]
    pub reset: f64,
    /// The response never arrives, and the connection stays open.
    #[serde(deserialize_with = "share")]
    pub stall: f64,
    /// The connection ends in the middle of the body.
    #[serde(deserialize_with = "share")]
    pub truncated: f64,
    /// The JSON of the body is cut in the middle.
    #[serde(deserialize_with = "share")]
    pub malformed: f64,
    /// The body is empty.
    #[serde(deserialize_with = "share")]
    pub empty: f64,
    /// Error with status 500. As with `error_rate`, the request is charged only if `failures_charge` is set.
    #[serde(deserialize_with = "share")]
    pub status_500: f64,
    /// A valid answer with status 201.
    #[serde(deserialize_with = "share")]
    pub status_201: f64,
}

/// Effect of a fault on one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DrawnFault {
    /// The request is admitted, but its response is broken.
    Broken(Fault),
    /// The request fails with status 500.
    Status500,
    /// The answer has status 201.
    Status201,
}

impl Faults {
    fn shares(&self) -> [(f64, DrawnFault); 7] {
        [
            (self.reset, DrawnFault::Broken(Fault::Reset)),
            (self.stall, DrawnFault::Broken(Fault::Stall)),
            (self.truncated, DrawnFault::Broken(Fault::Truncated)),
            (self.malformed, DrawnFault::Broken(Fault::Malformed)),
            (self.empty, DrawnFault::Broken(Fault::Empty)),
            (self.status_500, DrawnFault::Status500),
            (self.status_201, DrawnFault::Status201),
        ]
    }

    /// Returns the share of requests with any fault.
    pub fn total(&self) -> f64 {
        self.shares().iter().map(|(share, _)| share).sum()
    }

    /// Returns the share of requests that are admitted and get no valid answer.
    pub fn broken(&self) -> f64 {
        self.reset + self.stall + self.truncated + self.malformed + self.empty
    }

    /// Returns the fault at a position between 0 and 1, if there is one.
    pub(crate) fn at(&self, position: f64) -> Option<DrawnFault> {
        let mut end = 0.0;
        self.shares().into_iter().find_map(|(share, fault)| {
            end += share;
            (position < end).then_some(fault)
        })
    }
}
