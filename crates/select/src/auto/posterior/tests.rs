use super::*;
use crate::auto::tuning::Tuning;
use crate::testing::grid;

/// Four combinations of two roles, which have come 3, 3, 5 and 4 datapoints far of 6.
pub(in crate::auto) fn small() -> (Seen, Design, Scales) {
    let design = Design::new(&grid(&[2, 2], 6));
    let rows = vec![
        vec![1.0, 0.0, 1.0],
        vec![0.0, 0.0, 1.0],
        vec![1.0, 1.0, 1.0, 0.0, 1.0],
        vec![1.0, 0.5, 1.0, 0.0],
    ];
    let mut scales = Scales::new(&design, 4, Tuning::default());
    scales.shared = vec![0.05, 0.03, 0.02];
    scales.effects = vec![1.0, 0.01, 0.02];
    scales.own = vec![0.004, 0.01, 0.004, 0.006];
    scales.noise = 0.1;
    scales.grain = vec![1.0, 0.64, 1.44, 0.81];
    scales.slope = vec![1.0, 0.7, 0.9, 0.6];
    scales.base = vec![0.0, 0.1, 0.05, 0.2];
    (Seen::of(6, rows, vec![1.0; 4]), design, scales)
}

fn near(found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() < 1e-8, "{found} instead of {expected}");
    }
}

/// The expected values are from numpy: the covariance of all 24 cells written out, conditioned on the
/// 15 that were seen by one dense solve, without blocks.
#[test]
fn it_is_what_conditioning_all_cells_at_once_gives() {
    let (seen, design, scales) = small();
    let now = Posterior::new(&seen, &design, &scales).unwrap();
    near(&now.means, &[0.624292553, 0.35196572, 0.782775288, 0.628720428]);
    near(&now.theta, &[0.640386529, 0.438798084, 0.69665173, 0.58643206]);
    near(&now.own, &[0.000359168, -0.04890554, 0.009461464, 0.013337573]);
    near(&now.own_variance, &[0.003813169, 0.008379192, 0.003782068, 0.005281817]);
    let covariances = [
        [0.023366006, 0.009577295, 0.003669094, 0.003508833],
        [0.009577295, 0.018581873, 0.002307638, 0.00532937],
        [0.003669094, 0.002307638, 0.00769951, 0.002896295],
        [0.003508833, 0.00532937, 0.002896295, 0.011281446],
    ];
    for (one, expected) in covariances.iter().enumerate() {
        let found: Vec<f64> = (0..4).map(|other| now.covariance(one, other)).collect();
        near(&found, expected);
    }
}

/// From the same covariance: of the next cell of two combinations, one of which others have seen.
#[test]
fn what_the_next_cell_would_tell_is_known() {
    let (seen, design, scales) = small();
    let now = Posterior::new(&seen, &design, &scales).unwrap();
    let (covariances, variance) = now.outlook(3, 1, &[0, 1, 2, 3]);
    near(&covariances, &[0.006917554, 0.013718301, 0.001115598, 0.030995522]);
    near(&[variance], &[0.1692745018]);
    let (covariances, variance) = now.outlook(2, 1, &[0, 1, 2, 3]);
    near(&covariances, &[0.022014566, 0.013845828, 0.046197058, 0.017377772]);
    near(&[variance], &[0.2771823505]);
}

#[test]
fn a_complete_row_is_known() {
    let design = Design::new(&grid(&[2], 3));
    let seen = Seen::of(3, vec![vec![1.0, 0.0, 1.0], vec![0.5]], vec![1.0; 2]);
    let scales = Scales::new(&design, 2, Tuning::default());
    let now = Posterior::new(&seen, &design, &scales).unwrap();
    near(&[now.means[0], now.covariance(0, 0), now.covariance(0, 1)], &[2.0 / 3.0, 0.0, 0.0]);
    assert!(now.covariance(1, 1) > 0.01);
}

#[test]
fn nothing_seen_is_nothing_believed() {
    let design = Design::new(&grid(&[2], 3));
    let scales = Scales::new(&design, 2, Tuning::default());
    let seen = Seen::of(3, vec![vec![], vec![]], vec![1.0; 2]);
    assert!(Posterior::new(&seen, &design, &scales).is_none());
}
