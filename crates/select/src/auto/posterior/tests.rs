use super::*;
use crate::auto::tuning::AutoTuning;
use crate::testing::grid;

/// Four combinations of two roles with 3, 3, 5 and 4 of 6 datapoints.
pub(in crate::auto) fn small() -> (ModelData, Design, Scales) {
    let design = Design::new(&grid(&[2, 2], 6));
    let rows = vec![
        vec![1.0, 0.0, 1.0],
        vec![0.0, 0.0, 1.0],
        vec![1.0, 1.0, 1.0, 0.0, 1.0],
        vec![1.0, 0.5, 1.0, 0.0],
    ];
    let mut scales = Scales::new(&design, 4, AutoTuning::default());
    scales.shared = vec![0.05, 0.03, 0.02];
    scales.effects = vec![1.0, 0.01, 0.02];
    scales.own = vec![0.004, 0.01, 0.004, 0.006];
    scales.noise = 0.1;
    scales.noise_factor = vec![1.0, 0.64, 1.44, 0.81];
    scales.slope = vec![1.0, 0.7, 0.9, 0.6];
    scales.base = vec![0.0, 0.1, 0.05, 0.2];
    (ModelData::of(6, rows, vec![1.0; 4]), design, scales)
}

fn near(found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() < 1e-8, "{found} instead of {expected}");
    }
}

/// Reference values: numpy, with the full covariance of all 24 cells conditioned on the 15 observed ones
/// by one dense solve, without blocks.
#[test]
fn blocked_posterior_equals_dense_conditioning() {
    let (data, design, scales) = small();
    let posterior = Posterior::new(&data, &design, &scales).unwrap();
    near(&posterior.means, &[0.624292553, 0.35196572, 0.782775288, 0.628720428]);
    near(&posterior.theta, &[0.640386529, 0.438798084, 0.69665173, 0.58643206]);
    near(&posterior.own, &[0.000359168, -0.04890554, 0.009461464, 0.013337573]);
    near(&posterior.own_variance, &[0.003813169, 0.008379192, 0.003782068, 0.005281817]);
    let covariances = [
        [0.023366006, 0.009577295, 0.003669094, 0.003508833],
        [0.009577295, 0.018581873, 0.002307638, 0.00532937],
        [0.003669094, 0.002307638, 0.00769951, 0.002896295],
        [0.003508833, 0.00532937, 0.002896295, 0.011281446],
    ];
    for (one, expected) in covariances.iter().enumerate() {
        let found: Vec<f64> = (0..4).map(|other| posterior.covariance(one, other)).collect();
        near(&found, expected);
    }
}

/// From the same covariance: the next cell of two combinations, one on a datapoint that others saw.
#[test]
fn outlook_agrees_with_dense_conditioning() {
    let (data, design, scales) = small();
    let posterior = Posterior::new(&data, &design, &scales).unwrap();
    let (covariances, variance) = posterior.outlook(3, 1, &[0, 1, 2, 3]);
    near(&covariances, &[0.006917554, 0.013718301, 0.001115598, 0.030995522]);
    near(&[variance], &[0.1692745018]);
    let (covariances, variance) = posterior.outlook(2, 1, &[0, 1, 2, 3]);
    near(&covariances, &[0.022014566, 0.013845828, 0.046197058, 0.017377772]);
    near(&[variance], &[0.2771823505]);
}

#[test]
fn complete_row_has_no_variance() {
    let design = Design::new(&grid(&[2], 3));
    let data = ModelData::of(3, vec![vec![1.0, 0.0, 1.0], vec![0.5]], vec![1.0; 2]);
    let scales = Scales::new(&design, 2, AutoTuning::default());
    let posterior = Posterior::new(&data, &design, &scales).unwrap();
    near(
        &[posterior.means[0], posterior.covariance(0, 0), posterior.covariance(0, 1)],
        &[2.0 / 3.0, 0.0, 0.0],
    );
    assert!(posterior.covariance(1, 1) > 0.01);
}

#[test]
fn no_data_has_no_posterior() {
    let design = Design::new(&grid(&[2], 3));
    let scales = Scales::new(&design, 2, AutoTuning::default());
    let data = ModelData::of(3, vec![vec![], vec![]], vec![1.0; 2]);
    assert!(Posterior::new(&data, &design, &scales).is_none());
}
