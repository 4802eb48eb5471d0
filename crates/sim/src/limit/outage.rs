//! Outages of a profile.

use crate::Outage;
use crate::latency::seconds;
use std::time::Duration;

/// Start, end and status of each outage.
#[derive(Debug, Default)]
pub(crate) struct Outages(Vec<(Duration, Duration, u16)>);

impl Outages {
    pub(crate) fn new(outages: &[Outage]) -> Outages {
        let times = |outage: &Outage| (seconds(outage.from_s), seconds(outage.to_s), outage.status);
        Outages(outages.iter().map(times).collect())
    }

    /// Returns the status of all requests during an outage.
    pub(crate) fn status(&self, now: Duration) -> Option<u16> {
        self.0.iter().find(|(from, to, _)| (*from..*to).contains(&now)).map(|outage| outage.2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outage_includes_its_start_but_not_its_end() {
        let outage = |from_s, to_s, status| Outage { from_s, to_s, status };
        let outages = Outages::new(&[outage(60.0, 90.0, 503), outage(100.0, 101.0, 529)]);
        let found = [59, 60, 89, 90, 100].map(|s| outages.status(Duration::from_secs(s)));
        assert_eq!(found, [None, Some(503), Some(503), None, Some(529)]);
    }
}
