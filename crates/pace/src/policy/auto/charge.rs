//! Tokens that a provider charges for a request beyond its usage.
//!
//! Some providers charge `max_tokens` instead of the length of the answer. In a burst, the remainder in the
//! headers falls by the charges alone, because the refill is small.

/// Maximum refill during a measurement, as a share of the charges. Another user of the quota uses at most the
/// refill.
const MAX_REFILL_SHARE: f64 = 0.2;
/// Minimum number of requests of a measurement.
const MIN_REQUESTS: f64 = 4.0;
/// Weight of the newest value in the means of charges and usages.
const GAIN: f64 = 0.1;
/// Measurements until the mean counts, and the smallest excess that counts, as a share of the usage.
const MIN_SAMPLES: u32 = 3;
const MIN_EXCESS_SHARE: f64 = 0.25;

/// The remainder that the headers of an answer report.
#[derive(Debug, Clone, Copy)]
pub(super) struct RemainderReading {
    pub(super) sent_at: f64,
    /// Number of the request among those sent.
    pub(super) number: f64,
    pub(super) remaining: f64,
}

/// Means of the charges and the usage of requests.
#[derive(Debug, Default)]
pub(super) struct ExcessCharge {
    last: Option<RemainderReading>,
    charge: f64,
    samples: u32,
    usage: Option<f64>,
}

impl ExcessCharge {
    /// Returns the mean charge beyond the usage.
    pub(super) fn per_request(&self) -> f64 {
        let usage = self.usage.unwrap_or(0.0);
        let excess = self.charge - usage;
        if self.samples >= MIN_SAMPLES && excess > MIN_EXCESS_SHARE * usage { excess } else { 0.0 }
    }

    pub(super) fn on_usage(&mut self, usage: f64) {
        let mean = self.usage.get_or_insert(usage);
        *mean += GAIN * (usage - *mean);
    }

    /// Handles the headers of an answer; `rate` is the refill per second.
    pub(super) fn on_reading(&mut self, new: RemainderReading, rate: f64) {
        let Some(old) = self.last else {
            self.last = Some(new);
            return;
        };
        let requests = new.number - old.number;
        if requests <= 0.0 {
            return;
        }
        let refill = rate * (new.sent_at - old.sent_at);
        let charged = old.remaining - new.remaining + refill;
        if refill > MAX_REFILL_SHARE * charged {
            self.last = Some(new);
        } else if requests >= MIN_REQUESTS {
            self.last = Some(new);
            let gain = if self.samples == 0 { 1.0 } else { GAIN };
            self.charge += gain * (charged / requests - self.charge);
            self.samples = self.samples.saturating_add(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the excess after requests at distances of `seconds` that use 25 tokens each, where the provider
    /// charges `charge` and refills 500 per second.
    fn excess(charge: f64, seconds: f64) -> f64 {
        let mut excess = ExcessCharge::default();
        for number in (0..40).map(f64::from) {
            excess.on_usage(25.0);
            let sent_at = seconds * number;
            let remaining = 30_000.0 - charge * number + 500.0 * sent_at;
            excess.on_reading(RemainderReading { sent_at, number, remaining }, 500.0);
        }
        excess.per_request()
    }

    #[test]
    fn bursts_show_charges_beyond_the_usage() {
        assert!((excess(200.0, 0.01) - 175.0).abs() < 1e-6, "{}", excess(200.0, 0.01));
        assert_eq!(excess(28.0, 0.01), 0.0, "within the inaccuracy");
        assert_eq!(excess(25.0, 0.0), 0.0);
    }

    #[test]
    fn slow_requests_show_nothing() {
        assert_eq!(excess(200.0, 0.2), 0.0, "another user of the quota may have taken the rest");
    }

    #[test]
    fn late_answers_are_ignored() {
        let mut excess = ExcessCharge::default();
        excess.on_usage(25.0);
        for number in [0.0, 10.0, 5.0, 20.0, 15.0, 30.0] {
            let remaining = 1000.0 - 30.0 * number;
            excess.on_reading(RemainderReading { sent_at: 0.0, number, remaining }, 1.0);
        }
        assert_eq!((excess.samples, excess.charge), (3, 30.0));
    }
}
