//! Results of all selectors on all matrices.

use super::bound::lower_bound;
use super::matrix::Matrix;
use super::replay::{BuildSelector, EPSILON, ReplayFigures, replay};
use crate::usage;
use bakeoff_select::{OptionsError, SelectorOptions, Space, build_selector};

/// Selector whose cost is the reference.
pub const REFERENCE: &str = "arm_elimination";

/// Minimum number of combinations of a large search.
pub const LARGE_SPACE: usize = 50;

/// Configuration of the select benchmark.
#[derive(Debug)]
pub struct SelectConfig {
    /// Matrices by kind; a kind has the name of its first matrix.
    pub matrices: Vec<Vec<Matrix>>,
    /// Names of the selectors.
    pub selectors: Vec<String>,
    /// Number of orders of the datapoints.
    pub seeds: u64,
    /// Target confidence, for selectors that support one.
    pub confidence: f64,
}

/// Results of one selector on one kind of matrix.
#[derive(Debug, Clone)]
pub struct SelectRow {
    /// Name of the matrix or kind.
    pub matrix: String,
    /// Number of matrices of the kind.
    pub matrices: usize,
    /// Lowest find rate among the matrices.
    pub lowest: f64,
    /// Number of combinations.
    pub combos: usize,
    /// Number of datapoints.
    pub datapoints: usize,
    /// Lower bound of the cost as a share of the cost of all cells.
    pub bound: f64,
    /// Name of the selector.
    pub selector: String,
    /// Figures of the selector.
    pub figures: ReplayFigures,
    /// Whether the selector reports a confidence.
    pub has_confidence: bool,
    /// Cost share of the reference selector on this matrix; absent if it was not measured.
    pub reference: Option<f64>,
    /// Mean processor seconds per search.
    pub cpu_seconds: f64,
}

/// Runs the benchmark and calls `on_row` for each row. The reference selector runs first if it is among the
/// selectors.
///
/// # Errors
///
/// Fails if a selector is unknown or cannot be built with these options.
pub fn select(
    config: &SelectConfig,
    on_row: &mut dyn FnMut(&SelectRow),
) -> Result<Vec<SelectRow>, OptionsError> {
    let mut order: Vec<&String> = config.selectors.iter().collect();
    order.sort_by_key(|name| name.as_str() != REFERENCE);
    let mut rows = Vec::new();
    // Invalid selectors are reported before any output.
    if let Some(first) = config.matrices.iter().flatten().next() {
        for name in &order {
            build_selector(name, &first.space, &options(name, config.confidence, 0))?;
        }
    }
    for kind in &config.matrices {
        let Some(first) = kind.first() else { continue };
        let bound = mean(kind.iter().map(|matrix| lower_bound(matrix, EPSILON))).unwrap_or(0.0);
        let mut reference = None;
        for name in &order {
            let build = |space: &Space, seed| {
                build_selector(name, space, &options(name, config.confidence, seed))
            };
            let parts = kind.iter().map(|matrix| measure(matrix, config.seeds, &build));
            let parts = parts.collect::<Result<Vec<_>, _>>()?;
            let cpu_seconds = mean(parts.iter().map(|(_, cpu)| *cpu)).unwrap_or(0.0);
            let parts: Vec<ReplayFigures> = parts.into_iter().map(|(figures, _)| figures).collect();
            let figures = ReplayFigures::mean(&parts);
            if name.as_str() == REFERENCE {
                reference = Some(figures.cost_share);
            }
            let row = SelectRow {
                matrix: first.name.clone(),
                matrices: kind.len(),
                lowest: parts.iter().map(|part| part.find_rate).fold(1.0, f64::min),
                combos: first.space.combos(),
                datapoints: first.space.datapoints(),
                bound,
                selector: (*name).clone(),
                has_confidence: has_confidence(name),
                figures,
                reference,
                cpu_seconds,
            };
            on_row(&row);
            rows.push(row);
        }
    }
    Ok(rows)
}

/// Returns the options of a selector.
fn options(name: &str, confidence: f64, seed: u64) -> SelectorOptions {
    let confidence = has_confidence(name).then_some(confidence);
    let mut options = SelectorOptions::default();
    options.seed = seed;
    options.confidence = confidence;
    options
}

/// Whether a selector reports a confidence.
fn has_confidence(name: &str) -> bool {
    ["auto", "strict"].contains(&name)
}

/// Runs a selector over all seeds on all cores; returns its figures and the processor time per search.
fn measure(
    matrix: &Matrix,
    seeds: u64,
    build: &BuildSelector<'_>,
) -> Result<(ReplayFigures, f64), OptionsError> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let before = usage::of_self().cpu;
    let parts: Vec<Result<ReplayFigures, OptionsError>> = std::thread::scope(|scope| {
        let part = |thread: u64| seeds * thread / threads..seeds * (thread + 1) / threads;
        let parts: Vec<_> = (0..threads)
            .map(|thread| scope.spawn(move || replay(matrix, build, part(thread))))
            .collect();
        let join = |part: std::thread::ScopedJoinHandle<'_, _>| {
            part.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        parts.into_iter().map(join).collect()
    });
    let cpu = usage::of_self().cpu.saturating_sub(before).as_secs_f64() / seeds.max(1) as f64;
    let parts = parts.into_iter().collect::<Result<Vec<_>, _>>()?;
    Ok((ReplayFigures::mean(&parts), cpu))
}

/// Results of a selector over all matrices.
#[derive(Debug, Clone)]
pub struct SelectTotal {
    /// Name of the selector.
    pub selector: String,
    /// Mean find rate.
    pub find_rate: f64,
    /// Lowest find rate and its matrix.
    pub lowest: (f64, String),
    /// Mean of claimed confidence minus find rate; absent without claims.
    pub overclaim: Option<f64>,
    /// Mean cost relative to the reference over the large matrices; absent without any.
    pub of_reference_large: Option<f64>,
    /// Mean cost relative to the reference over all matrices.
    pub of_reference: Option<f64>,
    /// Mean cost relative to the lower bound.
    pub of_bound: f64,
}

/// Returns the results of each selector over all matrices.
pub fn totals(rows: &[SelectRow]) -> Vec<SelectTotal> {
    let mut names: Vec<&str> = Vec::new();
    for row in rows {
        if !names.contains(&row.selector.as_str()) {
            names.push(&row.selector);
        }
    }
    let total = |name: &str| {
        let own: Vec<&SelectRow> = rows.iter().filter(|row| row.selector == name).collect();
        let of_reference = |row: &&SelectRow| {
            row.reference.map(|reference| row.figures.cost_share / reference.max(1e-12))
        };
        let large = || own.iter().copied().filter(|row| row.combos >= LARGE_SPACE);
        let lowest = own
            .iter()
            .min_by(|one, other| one.figures.find_rate.total_cmp(&other.figures.find_rate))?;
        Some(SelectTotal {
            selector: name.to_owned(),
            find_rate: mean(own.iter().map(|row| row.figures.find_rate))?,
            lowest: (lowest.figures.find_rate, lowest.matrix.clone()),
            overclaim: mean(
                own.iter()
                    .filter(|row| row.has_confidence)
                    .map(|row| row.figures.claimed - row.figures.find_rate),
            ),
            of_reference_large: mean(large().filter_map(|row| of_reference(&row))),
            of_reference: mean(own.iter().copied().filter_map(|row| of_reference(&row))),
            of_bound: mean(own.iter().map(|row| row.figures.cost_share / row.bound.max(1e-12)))?,
        })
    };
    names.into_iter().filter_map(total).collect()
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0_u32), |(sum, count), value| (sum + value, count + 1));
    (count > 0).then(|| sum / f64::from(count))
}
