use super::*;
use crate::evidence::{RateEvidence, TrueRate};
use crate::testing::six_digits;
use proptest::prelude::*;
use statrs::function::factorial::ln_binomial;

fn threshold(text: &str) -> Threshold {
    text.parse().unwrap()
}

/// Reference values: exact rationals.
#[test]
fn evidence_agrees_with_exact_rationals() {
    let table = [
        (50, 12, 12, 35, 54.1147, 0.0505495),
        (50, 20, 18, 35, 26.9201, 0.0324714),
        (50, 20, 10, 35, 0.0562099, 5.88295),
        (50, 10, 10, 45, 2.51723, 0.0707071),
        (10, 6, 6, 7, 82.25, 0.0204082),
    ];
    for (planned, observed, passed, needed, pass, fail) in table {
        let evidence = full_run_evidence(passed, observed - passed, needed, planned);
        six_digits(evidence.pass, pass);
        six_digits(evidence.fail, fail);
    }
}

/// "pass" as the first n that suffices with 0, 1, … failures; "fail" as the failures that suffice
/// with 0, 1, … passes, the last value standing for all that follow. Reference values: exact
/// rationals.
#[test]
fn boundaries_agree_with_exact_rationals() {
    let table: [(u64, &str, &[u64], &[u64]); 9] = [
        (10, "0.7", &[6, 8, 9, 10], &[3, 4]),
        (10, "0.8", &[7, 9, 10], &[2, 3]),
        (10, "0.9", &[8, 10], &[2]),
        (20, "0.7", &[8, 11, 14, 16, 18, 19, 20], &[3, 5, 5, 6, 6, 7]),
        (20, "0.8", &[10, 14, 17, 19, 20], &[3, 4, 4, 4, 5]),
        (20, "0.9", &[14, 18, 20], &[2, 3]),
        (
            50,
            "0.7",
            &[10, 16, 20, 24, 27, 30, 33, 36, 39, 41, 43, 45, 47, 48, 49, 50],
            &[4, 5, 6, 7, 8, 9, 9, 10, 11, 11, 12, 12, 13, 13, 13, 14, 14, 14, 15, 15, 15, 16],
        ),
        (
            50,
            "0.8",
            &[15, 22, 27, 32, 36, 40, 43, 46, 48, 49, 50],
            &[3, 4, 5, 5, 6, 6, 7, 7, 8, 8, 8, 9, 9, 9, 9, 10, 10, 10, 10, 10, 11],
        ),
        (50, "0.9", &[24, 34, 41, 45, 49, 50], &[2, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 5, 5, 6]),
    ];
    for (planned, share, pass, fail) in table {
        let boundaries = Boundaries::new(threshold(share), planned, 0.05);
        let first: Vec<u64> = boundaries.passes().iter().zip(0..).map(|(s, f)| s + f).collect();
        assert_eq!(first, pass, "{planned} {share}");
        let last = fail[fail.len() - 1];
        let expected = fail.iter().copied().chain(std::iter::repeat(last));
        let needed = threshold(share).needed(planned) as usize;
        assert_eq!(
            boundaries.failures(),
            expected.take(needed).collect::<Vec<_>>(),
            "{planned} {share}"
        );
    }
}

#[test]
fn bound_reached_exactly_stops() {
    let all = Boundaries::new(Threshold::ALL, 20, 0.05);
    six_digits(full_run_evidence(19, 0, 20, 20).pass, 20.0);
    assert_eq!(all.decide(18, 0, 0), Decision::Open);
    assert_eq!(all.decide(19, 0, 0), Decision::Passed);
}

#[test]
fn errors_count_against_the_claim() {
    let boundaries = Boundaries::new(threshold("0.8"), 20, 0.05);
    assert_eq!(boundaries.decide(10, 0, 0), Decision::Passed);
    assert_eq!(boundaries.decide(10, 0, 1), Decision::Open);
    assert_eq!(boundaries.decide(13, 0, 1), Decision::Passed);
    assert_eq!(boundaries.decide(0, 3, 0), Decision::Failed);
    assert_eq!(boundaries.decide(0, 3, 1), Decision::Open);
    assert_eq!(boundaries.decide(0, 4, 1), Decision::Failed);
}

#[test]
fn no_judged_trials_leave_the_decision_open() {
    let none = Boundaries::new(threshold("0"), 5, 0.05);
    assert_eq!(none.decide(0, 0, 3), Decision::Open);
    assert_eq!(none.decide(0, 1, 0), Decision::Passed);
    assert_eq!(Boundaries::new(threshold("0.5"), 0, 0.05).decide(0, 0, 0), Decision::Open);
}

/// Boundaries come from a recursion over a hundred thousand steps; single points are checked
/// against the direct sum.
#[test]
fn hundred_thousand_cases_have_exact_boundaries() {
    let (planned, needed) = (100_000, 90_000);
    let boundaries = Boundaries::new(threshold("0.9"), planned, 0.025);
    let bound = (1.0 - TOLERANCE) / 0.025;
    for misses in [0, 1, 10, 300, 5_000, 9_990] {
        let hits = boundaries.passes()[misses as usize];
        assert!(evidence(hits, misses, needed, planned) >= bound * (1.0 - 1e-7));
        assert!(evidence(hits - 1, misses, needed, planned) < bound * (1.0 + 1e-7));
    }
    for others in [0, 1, 10, 300, 5_000, 50_000, 89_990] {
        let hits = boundaries.failures()[others as usize];
        assert!(evidence(hits, others, 10_001, planned) >= bound * (1.0 - 1e-7));
        assert!(evidence(hits - 1, others, 10_001, planned) < bound * (1.0 + 1e-7));
    }
}

/// A plan with its threshold and counts: planned, hundredths, passed, failed, errored.
fn progress(max: u64) -> impl Strategy<Value = (u64, u64, u64, u64, u64)> {
    (0..=max, 0_u64..=100)
        .prop_flat_map(|(planned, hundredths)| {
            (Just(planned), Just(hundredths), 0..=planned, 0_u64..3)
        })
        .prop_flat_map(|(planned, hundredths, observed, errored)| {
            let errored = errored.min(observed);
            let passed = 0..=observed - errored;
            (Just(planned), Just(hundredths), passed, Just(observed), Just(errored))
        })
        .prop_map(|(planned, hundredths, passed, observed, errored)| {
            (planned, hundredths, passed, observed - errored - passed, errored)
        })
}

fn share(hundredths: u64) -> Threshold {
    threshold(&format!("{}.{:02}", hundredths / 100, hundredths % 100))
}

proptest! {
    #[test]
    fn zero_risk_equals_decided((planned, hundredths, passed, failed, errored) in progress(40)) {
        let threshold = share(hundredths);
        for alpha in [0.0, 1e-280, -1.0, 1.0, f64::NAN] {
            let boundaries = Boundaries::new(threshold, planned, alpha);
            prop_assert_eq!(
                boundaries.decide(passed, failed, errored),
                threshold.decide(passed, failed, planned)
            );
        }
    }

    /// The staircase is where the direct sum reaches the bound.
    #[test]
    fn boundaries_agree_with_the_evidence(
        (planned, hundredths, passed, failed, _) in progress(200), alpha in 1e-6_f64..0.3,
    ) {
        prop_assume!(passed + failed > 0);
        let threshold = share(hundredths);
        let observed = full_run_evidence(passed, failed, threshold.needed(planned), planned);
        let near = |evidence: f64| (evidence * alpha - 1.0).abs() < 1e-7;
        prop_assume!(!near(observed.pass) && !near(observed.fail));
        let expected = if observed.pass >= 1.0 / alpha {
            Decision::Passed
        } else if observed.fail >= 1.0 / alpha {
            Decision::Failed
        } else {
            Decision::Open
        };
        prop_assert_eq!(Boundaries::new(threshold, planned, alpha).decide(passed, failed, 0), expected);
    }

    /// h(S) summed over all S is (N+1) / ((n+1)·C(n, s)).
    #[test]
    fn sequence_probabilities_have_the_expected_sum(
        passed in 0_u64..40, failed in 0_u64..40, more_passes in 1_u64..40, more_failures in 0_u64..40,
    ) {
        // Open on both sides: both divisors are positive.
        let (needed, spare) = (passed + more_passes, failed + more_failures);
        let planned = needed + spare;
        let left = planned - passed - failed;
        let h = |total: u64| (ln_binomial(left, total - passed) - ln_binomial(planned, total)).exp();
        let observed = full_run_evidence(passed, failed, needed, planned);
        let sum = observed.pass * (planned - needed + 1) as f64 * h(needed - 1)
            + observed.fail * needed as f64 * h(needed);
        let n = passed + failed;
        let expected = (planned + 1) as f64 / (n + 1) as f64 / ln_binomial(n, passed).exp();
        prop_assert!((sum / expected - 1.0).abs() < 1e-9, "{sum} {expected}");
    }
}

/// Behaviour of a stopping rule at a true rate, by exact recursion over (passed, failed).
#[derive(Default)]
struct RuleBehaviour {
    /// Mean share of trials saved.
    saved: f64,
    /// Probabilities to stop with, or end in, "passed" and "failed".
    passed: f64,
    failed: f64,
    /// Probability of a verdict different from that of the full run.
    differs: f64,
}

fn behaviour(
    planned: u64,
    needed: u64,
    rate: f64,
    decide: impl Fn(u64, u64) -> Decision,
) -> RuleBehaviour {
    let size = planned as usize;
    // later[m][j]: P(Bin(m, rate) >= j).
    let mut later = vec![vec![1.0]; size + 1];
    for m in 1..=size {
        let mut row = vec![1.0];
        for j in 1..=m {
            let same = later[m - 1].get(j).copied().unwrap_or(0.0);
            row.push(rate * later[m - 1][j - 1] + (1.0 - rate) * same);
        }
        later[m] = row;
    }
    let full_passes = |passed: u64, observed: u64| {
        let missing = needed.saturating_sub(passed) as usize;
        later[(planned - observed) as usize].get(missing).copied().unwrap_or(0.0)
    };
    let mut behaviour = RuleBehaviour::default();
    let mut row = vec![1.0];
    for observed in 0..=planned {
        let mut next = vec![0.0; observed as usize + 2];
        for (passed, &probability) in row.iter().enumerate() {
            let passed = passed as u64;
            let decision = decide(passed, observed - passed);
            if decision == Decision::Open && observed < planned {
                next[passed as usize] += probability * (1.0 - rate);
                next[passed as usize + 1] += probability * rate;
                continue;
            }
            behaviour.saved += probability * (planned - observed) as f64 / planned as f64;
            match decision {
                Decision::Passed => {
                    behaviour.passed += probability;
                    behaviour.differs += probability * (1.0 - full_passes(passed, observed));
                }
                Decision::Failed => {
                    behaviour.failed += probability;
                    behaviour.differs += probability * full_passes(passed, observed);
                }
                Decision::Open => {}
            }
        }
        row = next;
    }
    behaviour
}

fn confident_behaviour(planned: u64, share: &str, rate: f64, alpha: f64) -> RuleBehaviour {
    let boundaries = Boundaries::new(threshold(share), planned, alpha);
    behaviour(planned, threshold(share).needed(planned), rate, |s, f| boundaries.decide(s, f, 0))
}

fn decided_behaviour(planned: u64, share: &str, rate: f64) -> RuleBehaviour {
    let threshold = threshold(share);
    behaviour(planned, threshold.needed(planned), rate, |s, f| threshold.decide(s, f, planned))
}

/// Decisions of a rule about the true rate, instead of the full run, for each (passed, failed).
fn rate_table(planned: u64, shows: impl Fn(u64, u64) -> TrueRate) -> Vec<Vec<Decision>> {
    let decide = |s, f| match shows(s, f) {
        TrueRate::Above => Decision::Passed,
        TrueRate::Below => Decision::Failed,
        TrueRate::Unresolved => Decision::Open,
    };
    (0..=planned).map(|s| (0..=planned - s).map(|f| decide(s, f)).collect()).collect()
}

fn rate_behaviour(planned: u64, rate: f64, table: &[Vec<Decision>]) -> RuleBehaviour {
    behaviour(planned, 0, rate, |s, f| table[s as usize][f as usize])
}

const RATES: [f64; 7] = [0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99];
const SHARES: [&str; 6] = ["0.5", "0.6", "0.7", "0.8", "0.9", "0.95"];

/// Mean saving in percent and worst error over the grid.
fn over_grid(run: impl Fn(&str, f64) -> (f64, f64)) -> (f64, f64) {
    let (mut saved, mut worst) = (0.0, 0.0_f64);
    for share in SHARES {
        for rate in RATES {
            let (saving, error) = run(share, rate);
            saved += saving;
            worst = worst.max(error);
        }
    }
    (100.0 * saved / (RATES.len() * SHARES.len()) as f64, worst)
}

/// Equal to a whole percent and three decimals.
#[track_caller]
fn rounds_to(actual: (f64, f64), saved: f64, error: f64) {
    assert!(
        (actual.0 - saved).abs() <= 0.5001 && (actual.1 - error).abs() <= 0.0005001,
        "{actual:?}"
    );
}

/// Reference values: exact recursion. (The rows about betting
/// are simulations of rules that were not chosen.)
#[test]
fn savings_over_the_grid() {
    let sizes = [10, 20, 50, 100, 200];
    let confident = [(35.0, 0.008), (43.0, 0.013), (56.0, 0.013), (65.0, 0.019), (72.0, 0.020)];
    for (planned, (saved, error)) in sizes.into_iter().zip(confident) {
        let actual = over_grid(|share, rate| {
            let behaviour = confident_behaviour(planned, share, rate, 0.05);
            (behaviour.saved, behaviour.differs)
        });
        rounds_to(actual, saved, error);
    }
    for (planned, saved) in sizes.into_iter().zip([31.0, 31.0, 34.0, 34.0, 34.0]) {
        let actual = over_grid(|share, rate| {
            let behaviour = decided_behaviour(planned, share, rate);
            (behaviour.saved, behaviour.differs)
        });
        rounds_to(actual, saved, 0.0);
    }
    // A hundred cases share alpha.
    let (saved, _) = over_grid(|share, rate| {
        let behaviour = confident_behaviour(50, share, rate, 0.0005);
        (behaviour.saved, behaviour.differs)
    });
    assert!((saved - 43.0).abs() <= 0.5, "{saved}");
}

/// Savings of rules about the true rate: the one-sided mixtures used as evidence here, and the two-sided
/// mixture as the alternative.
#[test]
fn savings_of_rules_about_the_true_rate() {
    let one_sided = |s: u64, f: u64, p0: f64| RateEvidence::new(s, f, p0).true_rate(0.05);
    let two_sided = |s: u64, f: u64, p0: f64| {
        let (above, below) = (s as f64, f as f64);
        let ln = crate::beta::ln_beta(above + 1.0, below + 1.0)
            - above * p0.ln()
            - below * (1.0 - p0).ln();
        match () {
            () if ln < 20_f64.ln() => TrueRate::Unresolved,
            () if above > p0 * (above + below) => TrueRate::Above,
            () => TrueRate::Below,
        }
    };
    let run = |planned, shows: &dyn Fn(u64, u64, f64) -> TrueRate| {
        let tables = SHARES.map(|share| {
            let p0 = threshold(share).as_f64();
            rate_table(planned, |s, f| shows(s, f, p0))
        });
        over_grid(|share, rate| {
            let p0 = threshold(share).as_f64();
            let index = SHARES.iter().position(|&other| other == share).unwrap();
            let behaviour = rate_behaviour(planned, rate, &tables[index]);
            let above_is_wrong = if rate <= p0 { behaviour.passed } else { 0.0 };
            let below_is_wrong = if rate >= p0 { behaviour.failed } else { 0.0 };
            // Each side has its own alpha.
            (behaviour.saved, above_is_wrong.max(below_is_wrong))
        })
    };
    let sizes = [10, 20, 50, 100, 200];
    // The worst error at 100 trials is .030465.
    let expected = [(8.0, 0.018), (20.0, 0.022), (39.0, 0.027), (52.0, 0.030), (63.0, 0.033)];
    for (planned, (saved, error)) in sizes.into_iter().zip(expected) {
        rounds_to(run(planned, &one_sided), saved, error);
    }
    let expected = [(7.0, 0.018), (17.0, 0.022), (35.0, 0.024), (47.0, 0.026), (59.0, 0.027)];
    for (planned, (saved, error)) in sizes.into_iter().zip(expected) {
        rounds_to(run(planned, &two_sided), saved, error);
    }
}

/// Percent saved by `confident` for N = 20 / 50 / 200. Reference values: exact recursion.
#[test]
fn savings_by_true_rate() {
    let rates = [0.5, 0.7, 0.8, 0.9, 0.95, 0.99];
    let table = [
        (
            "0.7",
            [[41, 56, 82], [21, 20, 19], [28, 37, 62], [45, 64, 87], [53, 73, 91], [59, 79, 94]],
        ),
        (
            "0.8",
            [[56, 74, 92], [29, 37, 60], [20, 19, 19], [29, 41, 69], [39, 57, 84], [48, 68, 90]],
        ),
        (
            "0.9",
            [[73, 86, 96], [53, 69, 88], [35, 47, 70], [19, 20, 19], [20, 28, 53], [27, 47, 78]],
        ),
        (
            "0.95",
            [[80, 91, 97], [67, 83, 94], [52, 73, 87], [28, 45, 54], [16, 23, 20], [13, 22, 58]],
        ),
    ];
    for (share, row) in table {
        for (rate, expected) in rates.into_iter().zip(row) {
            for (planned, percent) in [20, 50, 200].into_iter().zip(expected) {
                let saved = 100.0 * confident_behaviour(planned, share, rate, 0.05).saved;
                assert!(
                    (saved - f64::from(percent)).abs() <= 0.501,
                    "{share} {rate} {planned}: {saved}"
                );
            }
        }
    }
}

#[track_caller]
fn percent(share: f64, expected: f64, half_unit: f64) {
    assert!((100.0 * share - expected).abs() <= half_unit, "{} is not {expected}", 100.0 * share);
}

/// A true rate of 0.8 and 50 trials, thresholds 0.7 and 0.9. Reference values: exact recursion.
#[test]
fn fifty_trials_at_a_true_rate_of_eight_tenths() {
    let table = [("0.7", 3.08, 3.32, 0.38, 37.4, 12.9), ("0.9", 4.80, 5.07, 0.39, 46.7, 40.8)];
    for (share, full_wrong, wrong, differs, saves, decided_saves) in table {
        let is_wrong = |behaviour: &RuleBehaviour| {
            if share == "0.7" { behaviour.failed } else { behaviour.passed }
        };
        let decided = decided_behaviour(50, share, 0.8);
        percent(is_wrong(&decided), full_wrong, 0.00501);
        percent(decided.saved, decided_saves, 0.0501);
        assert_eq!(decided.differs, 0.0);
        let confident = confident_behaviour(50, share, 0.8, 0.05);
        percent(is_wrong(&confident), wrong, 0.00501);
        percent(confident.differs, differs, 0.00501);
        percent(confident.saved, saves, 0.0501);
    }
    // True rate = threshold.
    percent(confident_behaviour(50, "0.7", 0.7, 0.05).differs, 1.25, 0.00501);
    percent(confident_behaviour(50, "0.9", 0.9, 0.05).differs, 1.08, 0.00501);
}

/// Evidence about the true rate saves less, and no valid rule could save as much: the share saved
/// on the right side is at max the power of the max powerful test of level 0.05 (Neyman & Pearson
/// 1933), averaged over the trials before the last. Reference values: SciPy 1.17.
#[test]
fn rules_about_the_true_rate_save_less() {
    for (p0, saves, max) in [(0.7, 10.2, 27.8), (0.9, 18.7, 41.0)] {
        let table = rate_table(50, |s, f| RateEvidence::new(s, f, p0).true_rate(0.05));
        let behaviour = rate_behaviour(50, 0.8, &table);
        percent(behaviour.saved, saves, 0.0501);
        let bound = (1..50).map(|n| greatest_power(n, p0, 0.8)).sum::<f64>() / 50.0;
        percent(bound, max, 0.0501);
    }
    percent(greatest_power(50, 0.7, 0.8), 47.9, 0.0501);
}

/// Power of the randomised test of `n` trials that rejects `null` in favour of `rate`.
fn greatest_power(n: u64, null: f64, rate: f64) -> f64 {
    let (null, rate) = if rate > null { (null, rate) } else { (1.0 - null, 1.0 - rate) };
    let beyond = |hits: u64, p: f64| {
        if hits >= n {
            0.0
        } else {
            crate::beta::cumulative(hits as f64 + 1.0, (n - hits) as f64, p)
        }
    };
    let at = |hits: u64, p: f64| {
        if hits == 0 { 1.0 - beyond(0, p) } else { beyond(hits - 1, p) - beyond(hits, p) }
    };
    let cut = (0..=n).find(|&hits| beyond(hits, null) <= 0.05).unwrap();
    let share = (0.05 - beyond(cut, null)) / at(cut, null);
    beyond(cut, rate) + share * at(cut, rate)
}
