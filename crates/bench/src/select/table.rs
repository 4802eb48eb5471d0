//! All selectors on all matrices, side by side.

use super::bound::lower_bound;
use super::matrix::Matrix;
use super::replay::{EPSILON, Figures, Make, replay};
use crate::usage;
use bakeoff_select::{OptionsError, SelectorOptions, Space, build_selector};

/// What the others' money is compared with.
pub const RIVAL: &str = "arm_elimination";

/// From so many combinations on a search is large.
pub const LARGE: usize = 50;

/// What is measured.
#[derive(Debug)]
pub struct SelectConfig {
    /// On these; those of one kind stand together, under the name of the first.
    pub matrices: Vec<Vec<Matrix>>,
    /// Whom, by name.
    pub selectors: Vec<String>,
    /// Orders of the datapoints that each is tried on.
    pub seeds: u64,
    /// How sure those are to be that can say so.
    pub confidence: f64,
}

/// One selector on one matrix.
#[derive(Debug, Clone)]
pub struct SelectRow {
    /// The matrix, or their kind.
    pub matrix: String,
    /// How many of that kind.
    pub matrices: usize,
    /// The lowest find rate among them.
    pub lowest: f64,
    /// Its combinations.
    pub combos: usize,
    /// Its datapoints.
    pub datapoints: usize,
    /// Money as a share of all of it that no method with these aims can do without.
    pub bound: f64,
    /// The selector.
    pub selector: String,
    /// What it did.
    pub figures: Figures,
    /// Whether it says how sure it is.
    pub claims: bool,
    /// What the rival spent on this matrix, as a share of all of it; absent when it was not measured.
    pub rival: Option<f64>,
    /// Processor seconds of its own for a search, on average.
    pub cpu_seconds: f64,
}

/// Measures, and tells each row as it comes. The rival is measured first where it is wanted at all.
///
/// # Errors
///
/// A selector that does not exist, or that cannot be made without more.
pub fn select(
    config: &SelectConfig,
    tell: &mut dyn FnMut(&SelectRow),
) -> Result<Vec<SelectRow>, OptionsError> {
    let mut order: Vec<&String> = config.selectors.iter().collect();
    order.sort_by_key(|name| name.as_str() != RIVAL);
    let mut rows = Vec::new();
    // What cannot be made is found before anything is shown.
    if let Some(first) = config.matrices.iter().flatten().next() {
        for name in &order {
            build_selector(name, &first.space, &options(name, config.confidence, 0))?;
        }
    }
    for kind in &config.matrices {
        let Some(first) = kind.first() else { continue };
        let bound = mean(kind.iter().map(|matrix| lower_bound(matrix, EPSILON))).unwrap_or(0.0);
        let mut rival = None;
        for name in &order {
            let make = |space: &Space, seed| {
                build_selector(name, space, &options(name, config.confidence, seed))
            };
            let parts = kind.iter().map(|matrix| measured(matrix, config.seeds, &make));
            let parts = parts.collect::<Result<Vec<_>, _>>()?;
            let cpu_seconds = mean(parts.iter().map(|(_, cpu)| *cpu)).unwrap_or(0.0);
            let parts: Vec<Figures> = parts.into_iter().map(|(figures, _)| figures).collect();
            let figures = Figures::mean(&parts);
            if name.as_str() == RIVAL {
                rival = Some(figures.cost_share);
            }
            let row = SelectRow {
                matrix: first.name.clone(),
                matrices: kind.len(),
                lowest: parts.iter().map(|part| part.find_rate).fold(1.0, f64::min),
                combos: first.space.combos(),
                datapoints: first.space.datapoints(),
                bound,
                selector: (*name).clone(),
                claims: claims(name),
                figures,
                rival,
                cpu_seconds,
            };
            tell(&row);
            rows.push(row);
        }
    }
    Ok(rows)
}

/// The options that a selector is measured with.
fn options(name: &str, confidence: f64, seed: u64) -> SelectorOptions {
    let confidence = claims(name).then_some(confidence);
    SelectorOptions { seed, confidence, ..SelectorOptions::default() }
}

/// Whether a selector says how sure it is.
fn claims(name: &str) -> bool {
    ["auto", "strict"].contains(&name)
}

/// What a selector does over all seeds, on all cores, and the processor time of a search.
fn measured(matrix: &Matrix, seeds: u64, make: &Make<'_>) -> Result<(Figures, f64), OptionsError> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let before = usage::of_self().cpu;
    let parts: Vec<Result<Figures, OptionsError>> = std::thread::scope(|scope| {
        let part = |thread: u64| seeds * thread / threads..seeds * (thread + 1) / threads;
        let parts: Vec<_> = (0..threads)
            .map(|thread| scope.spawn(move || replay(matrix, make, part(thread))))
            .collect();
        let join = |part: std::thread::ScopedJoinHandle<'_, _>| {
            part.join().unwrap_or_else(|broken| std::panic::resume_unwind(broken))
        };
        parts.into_iter().map(join).collect()
    });
    let cpu = usage::of_self().cpu.saturating_sub(before).as_secs_f64() / seeds.max(1) as f64;
    let parts = parts.into_iter().collect::<Result<Vec<_>, _>>()?;
    Ok((Figures::mean(&parts), cpu))
}

/// What a selector reached over all matrices.
#[derive(Debug, Clone)]
pub struct SelectTotal {
    /// The selector.
    pub selector: String,
    /// Find rate, on average over the matrices.
    pub find_rate: f64,
    /// The lowest find rate, and the matrix.
    pub lowest: (f64, String),
    /// What it claims less what it finds, on average; absent where it claims nothing.
    pub overclaim: Option<f64>,
    /// Money beside the rival's, on average over the large matrices; absent when there is none.
    pub of_rival_large: Option<f64>,
    /// The same over all matrices.
    pub of_rival: Option<f64>,
    /// Money beside the lower bound, on average.
    pub of_bound: f64,
}

/// What each selector reached over all matrices.
pub fn totals(rows: &[SelectRow]) -> Vec<SelectTotal> {
    let mut names: Vec<&str> = Vec::new();
    for row in rows {
        if !names.contains(&row.selector.as_str()) {
            names.push(&row.selector);
        }
    }
    let total = |name: &str| {
        let own: Vec<&SelectRow> = rows.iter().filter(|row| row.selector == name).collect();
        let of_rival =
            |row: &&SelectRow| row.rival.map(|rival| row.figures.cost_share / rival.max(1e-12));
        let large = || own.iter().copied().filter(|row| row.combos >= LARGE);
        let lowest = own
            .iter()
            .min_by(|one, other| one.figures.find_rate.total_cmp(&other.figures.find_rate))?;
        Some(SelectTotal {
            selector: name.to_owned(),
            find_rate: mean(own.iter().map(|row| row.figures.find_rate))?,
            lowest: (lowest.figures.find_rate, lowest.matrix.clone()),
            overclaim: mean(
                own.iter()
                    .filter(|row| row.claims)
                    .map(|row| row.figures.claimed - row.figures.find_rate),
            ),
            of_rival_large: mean(large().filter_map(|row| of_rival(&row))),
            of_rival: mean(own.iter().copied().filter_map(|row| of_rival(&row))),
            of_bound: mean(own.iter().map(|row| row.figures.cost_share / row.bound.max(1e-12)))?,
        })
    };
    names.into_iter().filter_map(total).collect()
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0_u32), |(sum, count), value| (sum + value, count + 1));
    (count > 0).then(|| sum / f64::from(count))
}
