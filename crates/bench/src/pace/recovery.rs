//! Recovery time of a scheduler after a change of the rate.

use bakeoff_sim::Profile;

/// Minimum window of a rate measurement, in seconds and requests.
const MIN_SECONDS: f64 = 5.0;
const MIN_REQUESTS: f64 = 20.0;
/// Share of the new rate that counts as recovered.
const RECOVERED_SHARE: f64 = 0.9;

/// Returns the mean seconds from a change until recovery; `None` without a change during the work.
pub(super) fn seconds(profile: &Profile, accepted_at: &[f64]) -> Option<f64> {
    let foreign = profile.foreign.map_or(0.0, |foreign| foreign.requests_per_s);
    let end = *accepted_at.last()?;
    let mut times = Vec::new();
    for (index, step) in profile.steps.iter().enumerate() {
        let until = profile.steps.get(index + 1).map_or(end, |next| next.at_s.min(end));
        let rate = step.requests_per_s - foreign;
        let window = MIN_SECONDS.max(MIN_REQUESTS / rate);
        if step.at_s + window > until {
            continue;
        }
        let enough = RECOVERED_SHARE * rate * window;
        let first = accepted_at.partition_point(|at| *at < step.at_s);
        let used = accepted_at[first..].iter().copied().enumerate().find(|(offset, at)| {
            let after = accepted_at.partition_point(|other| *other < at + window);
            (after - first - offset) as f64 >= enough
        });
        // Without recovery, the whole duration of the rate counts.
        times.push(used.map_or(until, |(_, at)| at.min(until)) - step.at_s);
    }
    let count = times.len() as f64;
    (!times.is_empty()).then(|| times.iter().sum::<f64>() / count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bakeoff_sim::RateStep;

    fn profile(steps: Vec<RateStep>) -> Profile {
        Profile { steps, ..Profile::default() }
    }

    #[test]
    fn recovery_is_the_time_until_the_new_rate_is_used() {
        let step = RateStep { at_s: 10.0, requests_per_s: 10.0 };
        // One a second until 15 s, then ten.
        let mut times: Vec<f64> = (0..15).map(f64::from).collect();
        times.extend((0..200).map(|number| 15.0 + f64::from(number) / 10.0));
        let recovery = seconds(&profile(vec![step]), &times).unwrap();
        assert!((4.0..=5.0).contains(&recovery), "{recovery}");
        assert_eq!(seconds(&profile(vec![]), &times), None);
        assert_eq!(seconds(&profile(vec![RateStep { at_s: 99.0, ..step }]), &times), None);
    }
}
