//! Results of all selectors on all matrices.

use super::bound::lower_bound;
use super::goals::mean;
use super::matrix::Matrix;
use super::replay::{BuildSelector, EPSILON, ReplayFigures, replay};
use crate::usage;
use bakeoff_select::{Hints, OptionsError, SelectorOptions, Space, build_selector};
use std::ops::Range;

/// Selector whose cost is the reference.
pub const REFERENCE: &str = "arm_elimination";

/// Minimum number of combinations of a large search.
pub const LARGE_SPACE: usize = 50;

/// Matrices that are measured together; the group has the name of the first.
#[derive(Debug)]
pub struct MatrixGroup {
    /// Whether the scores were recorded, not generated.
    pub is_recorded: bool,
    /// The matrices.
    pub matrices: Vec<Matrix>,
}

/// Configuration of the select benchmark.
#[derive(Debug)]
pub struct SelectConfig {
    /// Matrices by group.
    pub groups: Vec<MatrixGroup>,
    /// Names of the selectors.
    pub selectors: Vec<String>,
    /// Seeds of the orders of the datapoints.
    pub seeds: Range<u64>,
    /// Target confidence, for selectors that support one.
    pub confidence: f64,
}

/// Results of one selector on one group of matrices.
#[derive(Debug, Clone)]
pub struct SelectRow {
    /// Name of the matrix or kind.
    pub matrix: String,
    /// Whether the matrices were recorded.
    pub is_recorded: bool,
    /// Figures of each matrix.
    pub matrices: Vec<ReplayFigures>,
    /// Number of combinations of the first matrix.
    pub combos: usize,
    /// Number of datapoints of the first matrix.
    pub datapoints: usize,
    /// Lower bound of the cost as a share of the cost of all cells.
    pub bound: f64,
    /// Name of the selector.
    pub selector: String,
    /// Figures of the selector.
    pub figures: ReplayFigures,
    /// Whether the selector reports a confidence.
    pub has_confidence: bool,
    /// Cost share of the reference selector on this group; absent if it was not measured.
    pub reference: Option<f64>,
    /// Mean processor seconds per search.
    pub cpu_seconds: f64,
}

impl SelectRow {
    /// Returns the lowest find rate among the matrices.
    pub fn lowest(&self) -> f64 {
        self.matrices.iter().map(|matrix| matrix.find_rate).fold(1.0, f64::min)
    }
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
    if let Some(first) = config.groups.iter().flat_map(|group| &group.matrices).next() {
        for name in &order {
            build_selector(name, &first.space, &options(name, config.confidence, first, 0))?;
        }
    }
    for group in &config.groups {
        let Some(first) = group.matrices.first() else { continue };
        let bound =
            mean(group.matrices.iter().map(|matrix| lower_bound(matrix, EPSILON))).unwrap_or(0.0);
        let mut reference = None;
        for name in &order {
            let measure = |matrix: &Matrix| {
                let build = |space: &Space, seed| {
                    build_selector(name, space, &options(name, config.confidence, matrix, seed))
                };
                measure(matrix, &config.seeds, &build)
            };
            let measured = group.matrices.iter().map(measure);
            let measured = measured.collect::<Result<Vec<_>, _>>()?;
            let cpu_seconds = mean(measured.iter().map(|(_, cpu)| *cpu)).unwrap_or(0.0);
            let matrices: Vec<ReplayFigures> =
                measured.into_iter().map(|(figures, _)| figures).collect();
            let figures = ReplayFigures::mean(&matrices);
            if name.as_str() == REFERENCE {
                reference = Some(figures.cost_share);
            }
            let row = SelectRow {
                matrix: first.name.clone(),
                is_recorded: group.is_recorded,
                matrices,
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

/// Returns the options of a selector, as `bakeoff select` sets them.
fn options(name: &str, confidence: f64, matrix: &Matrix, seed: u64) -> SelectorOptions {
    let confidence = has_confidence(name).then_some(confidence);
    let mut options = SelectorOptions::default();
    options.seed = seed;
    options.confidence = confidence;
    options.hints = (name == "hill_climbing").then(|| Hints::from_prices(matrix.prices()));
    options
}

/// Whether a selector reports a confidence.
fn has_confidence(name: &str) -> bool {
    ["auto", "strict"].contains(&name)
}

/// Runs a selector over all seeds on all cores; returns its figures and the processor time per search.
fn measure(
    matrix: &Matrix,
    seeds: &Range<u64>,
    build: &BuildSelector<'_>,
) -> Result<(ReplayFigures, f64), OptionsError> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let before = usage::of_self().cpu;
    let count = seeds.end - seeds.start;
    let part = |thread: u64| {
        let at = |thread: u64| seeds.start + count * thread / threads;
        at(thread)..at(thread + 1)
    };
    let parts: Vec<Result<ReplayFigures, OptionsError>> = std::thread::scope(|scope| {
        let parts: Vec<_> = (0..threads)
            .map(part)
            .map(|seeds| scope.spawn(move || replay(matrix, build, seeds)))
            .collect();
        let join = |part: std::thread::ScopedJoinHandle<'_, _>| {
            part.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        parts.into_iter().map(join).collect()
    });
    let cpu = usage::of_self().cpu.saturating_sub(before).as_secs_f64();
    let cpu = cpu / count.max(1) as f64;
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
