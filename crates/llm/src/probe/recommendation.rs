//! Recommended settings, slightly below the measured limit.

use super::confirmation::{SAFETY_FACTOR, recommended_connections};
use super::finding::LimitFinding;
use super::headers::HeaderLimits;

use bakeoff_pace::{Connections, Dimension, Limits, Strategy};
use std::fmt;

/// Recommended limits of a model. `Display` formats them as a line of a suite file.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Recommendation(Limits);

impl Recommendation {
    /// Returns the settings for a finding, or `None` if nothing is known. `latency` is that of a slow request in
    /// seconds.
    pub(super) fn new(
        limit: LimitFinding,
        latency: f64,
        headers: &HeaderLimits,
    ) -> Option<Recommendation> {
        let below = |limit: f64| ((SAFETY_FACTOR * limit).floor() as u64).max(1);
        let tpm = headers.per_minute(Dimension::Tokens).map(below);
        let limits = match limit {
            LimitFinding::Cap { connections } => {
                Limits::fixed(recommended_connections(connections))
            }
            LimitFinding::Knee { connections } => {
                Limits::fixed((connections.round() as u32).max(1))
            }
            LimitFinding::Rate { per_second } => paced(below(per_second * 60.0), u32::MAX, latency),
            LimitFinding::RateAndCap { per_second, connections } => {
                let rpm = below(per_second * 60.0);
                paced(rpm, recommended_connections(connections), latency)
            }
            LimitFinding::NotReached { connections } => {
                match headers.per_minute(Dimension::Requests) {
                    Some(per_minute) => {
                        let rpm = below(per_minute);
                        let needed = connections_for_rate(rpm, latency).min(connections);
                        Limits::new(Strategy::Proactive).rpm(rpm).connections(needed)
                    }
                    None => Limits::fixed(connections),
                }
            }
            LimitFinding::Unknown => return None,
        };
        let tpm = tpm.filter(|_| limits.strategy == Strategy::Proactive);
        Some(Recommendation(tpm.map_or(limits, |tpm| limits.tpm(tpm))))
    }

    /// Returns the settings.
    pub fn limits(&self) -> Limits {
        self.0
    }

    /// Returns the maximum number of requests in flight.
    pub fn connections(&self) -> Option<u32> {
        match self.0.connections {
            Some(Connections::Max(most)) => Some(most),
            _ => None,
        }
    }
}

/// Returns settings for a rate. The burst that the provider allows is unknown, and a steady pace needs none.
fn paced(rpm: u64, max_connections: u32, latency: f64) -> Limits {
    let connections = connections_for_rate(rpm, latency).min(max_connections);
    Limits::new(Strategy::Proactive).rpm(rpm).burst(1).connections(connections)
}

/// Returns the requests in flight that a rate needs: requests per minute × seconds per request / 60, rounded
/// up.
pub fn connections_for_rate(rpm: u64, seconds_per_request: f64) -> u32 {
    ((rpm as f64 * seconds_per_request / 60.0 - 1e-9).ceil() as u32).max(1)
}

impl fmt::Display for Recommendation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "limits = {{ strategy = \"{}\"", self.0.strategy)?;
        let numbers = [
            ("connections", self.connections().map(u64::from)),
            ("rpm", self.0.rpm),
            ("tpm", self.0.tpm),
            ("burst", self.0.burst.map(u64::from)),
        ];
        for (name, number) in numbers {
            if let Some(number) = number {
                write!(f, ", {name} = {number}")?;
            }
        }
        f.write_str(" }")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_rate_times_latency_rounded_up() {
        let table = [(60, 3.0, 3), (4000, 1.5, 100), (61, 3.0, 4), (1, 0.001, 1), (0, 0.0, 1)];
        for (rpm, seconds, connections) in table {
            assert_eq!(connections_for_rate(rpm, seconds), connections, "{rpm} rpm × {seconds} s");
        }
    }
}
