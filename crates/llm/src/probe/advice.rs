//! From what was found to settings that keep below it.

use super::headers::Headers;
use super::search::{Limit, MARGIN, recommended};
use bakeoff_pace::{Connections, Dimension, Limits, Strategy};
use std::fmt;

/// Settings for the model, a little below what was found. Shown as a line for a suite file.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Advice(Limits);

impl Advice {
    /// What to set; nothing when nothing is known.
    pub(super) fn new(limit: Limit, latency: f64, headers: &Headers) -> Option<Advice> {
        let below = |limit: f64| ((MARGIN * limit).floor() as u64).max(1);
        let tpm = headers.per_minute(Dimension::Tokens).map(below);
        let limits = match limit {
            Limit::Cap { connections } => Limits::fixed(recommended(connections)),
            Limit::Knee { connections } => Limits::fixed((connections.round() as u32).max(1)),
            Limit::Rate { per_second } => {
                let rpm = below(per_second * 60.0);
                // One at a time: how many may come at once is not known, and a steady pace needs no burst.
                let paced = Limits::new(Strategy::Proactive).rpm(rpm).burst(1);
                paced.connections(rule_of_thumb(rpm, latency))
            }
            Limit::NotReached { connections } => match headers.per_minute(Dimension::Requests) {
                Some(told) => {
                    let rpm = below(told);
                    let enough = rule_of_thumb(rpm, latency).min(connections);
                    Limits::new(Strategy::Proactive).rpm(rpm).connections(enough)
                }
                None => Limits::fixed(connections),
            },
            Limit::Unknown => return None,
        };
        let tpm = tpm.filter(|_| limits.strategy == Strategy::Proactive);
        Some(Advice(tpm.map_or(limits, |tpm| limits.tpm(tpm))))
    }

    /// The same as settings.
    pub fn limits(&self) -> Limits {
        self.0
    }

    /// Most requests in flight.
    pub fn connections(&self) -> Option<u32> {
        match self.0.connections {
            Some(Connections::Max(most)) => Some(most),
            _ => None,
        }
    }
}

/// How many in flight a rate keeps busy: requests per minute × seconds per request / 60, rounded up.
pub fn rule_of_thumb(rpm: u64, seconds_per_request: f64) -> u32 {
    ((rpm as f64 * seconds_per_request / 60.0 - 1e-9).ceil() as u32).max(1)
}

impl fmt::Display for Advice {
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
    fn as_many_in_flight_as_keep_a_rate_busy() {
        let table = [(60, 3.0, 3), (4000, 1.5, 100), (61, 3.0, 4), (1, 0.001, 1), (0, 0.0, 1)];
        for (rpm, seconds, connections) in table {
            assert_eq!(rule_of_thumb(rpm, seconds), connections, "{rpm} rpm × {seconds} s");
        }
    }
}
