//! Replays selectors: `select_lab [seeds=N] [instances=N] [from=N] [only=TEXT,…] [skip=TEXT] [FILE…]
//! [name=value,…]`. `from` is the first seed of the made matrices; names are those of constants of
//! `auto`, each value of which is tried.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use bakeoff_bench::select::{EPSILON, Figures, KINDS, Make, Matrix, generate, lower_bound, replay};
use bakeoff_select::{Auto, AutoOptions, SelectorOptions, Space, Tuning};
use std::time::Instant;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (mut seeds, mut instances, mut only, mut from) = (20_u64, 3_u64, String::new(), 1000_u64);
    let mut files = Vec::new();
    let mut skip = "nothing".to_owned();
    let mut tunings: Vec<(String, Tuning)> = vec![("auto".to_owned(), Tuning::default())];
    for argument in &arguments {
        match argument.split_once('=') {
            None => files.push(argument.clone()),
            Some(("seeds", value)) => seeds = value.parse().unwrap(),
            Some(("instances", value)) => instances = value.parse().unwrap(),
            Some(("from", value)) => from = value.parse().unwrap(),
            Some(("skip", value)) => skip = value.to_owned(),
            Some(("only", value)) => only = value.to_owned(),
            Some((name, values)) => {
                // `name=1,2` tries each; several names try all combinations.
                let before = tunings.clone();
                tunings.clear();
                for (label, tuning) in &before {
                    for value in values.split(',') {
                        let mut tuning = *tuning;
                        set(&mut tuning, name, value);
                        tunings.push((format!("{label} {name}={value}"), tuning));
                    }
                }
            }
        }
    }
    let mut groups: Vec<(String, Vec<Matrix>)> = Vec::new();
    for file in files {
        let matrix = Matrix::parse(&std::fs::read_to_string(file).unwrap()).unwrap();
        groups.push((matrix.name.clone(), vec![matrix]));
    }
    for (number, kind) in KINDS.iter().enumerate().filter(|(_, kind)| {
        instances > 0
            && only.split(',').any(|text| kind.name.contains(text))
            && !kind.name.contains(&skip)
    }) {
        // Kinds have seeds of their own: the same seed would give all of them the same effects.
        let first = from + 100_000 * number as u64;
        let made = (0..instances).map(|instance| generate(kind, 200, first + instance).unwrap());
        groups.push((kind.name.to_owned(), made.collect()));
    }
    println!(
        "{:38} {:>5} {:>6} {:>6} {:>6} {:>6} {:>6} {:>6} {:>6} {:>6}",
        "", "bound", "find", "worst", "regret", "money", "of AE", "cells", "claim-", "ms"
    );
    let mut totals = vec![(0.0, 0.0, 0.0, 0.0, 0.0); tunings.len()];
    for (name, matrices) in &groups {
        let bound = mean(matrices, |matrix| lower_bound(matrix, EPSILON));
        println!("{name}");
        let elimination: Vec<Figures> = matrices
            .iter()
            .map(|matrix| {
                let make = |space: &Space, seed: u64| -> Box<dyn bakeoff_select::Selector> {
                    let options = SelectorOptions { seed, ..SelectorOptions::default() };
                    bakeoff_select::named("arm_elimination", space, &options).unwrap()
                };
                spread(matrix, &make, seeds)
            })
            .collect();
        show("arm_elimination", bound, &elimination, &elimination, 0.0);
        for ((label, tuning), total) in tunings.iter().zip(&mut totals) {
            let make = |space: &Space, seed: u64| -> Box<dyn bakeoff_select::Selector> {
                Box::new(Auto::new(
                    space,
                    AutoOptions { seed, tuning: *tuning, ..AutoOptions::default() },
                ))
            };
            let start = Instant::now();
            let figures: Vec<Figures> =
                matrices.iter().map(|matrix| spread(matrix, &make, seeds)).collect();
            let time =
                start.elapsed().as_secs_f64() * 1000.0 / (seeds * matrices.len() as u64) as f64;
            show(label, bound, &figures, &elimination, time);
            let find = mean(&figures, |of| of.find_rate);
            let money = mean(&figures, |of| of.cost_share);
            let ratio = money / mean(&elimination, |of| of.cost_share);
            total.0 += find;
            total.1 = f64::max(total.1, 1.0 - find);
            total.2 += ratio;
            total.3 += mean(&figures, |of| of.claimed) - find;
            total.4 += money / bound;
        }
    }
    println!(
        "over all kinds: find, lowest, money of arm_elimination, claimed too much, money of the bound"
    );
    let count = groups.len() as f64;
    for ((label, _), total) in tunings.iter().zip(totals) {
        println!(
            "{label:38} {:.3} {:.3} {:.3} {:+.3} {:.2}",
            total.0 / count,
            1.0 - total.1,
            total.2 / count,
            total.3 / count,
            total.4 / count
        );
    }
}

fn set(tuning: &mut Tuning, name: &str, value: &str) {
    let number: f64 = value.parse().unwrap();
    match name {
        "first" => tuning.first = number as usize,
        "leader" => tuning.leader = number as usize,
        "caution" => tuning.caution = number,
        "few" => tuning.few = number,
        "step" => tuning.step = number,
        "band" => tuning.band = number,
        "own" => tuning.own = number,
        "alone" => tuning.alone = number,
        "least_own" => tuning.least_own = number,
        "tail" => tuning.tail.0 = number,
        "wide" => tuning.tail.1 = number,
        "doubt" => tuning.doubt = number,
        "doubt_effects" => tuning.doubt_effects = number,
        "doubt_own" => tuning.doubt_own = number,
        "least" => tuning.least = number,
        "sweeps" => tuning.sweeps = number as usize,
        _ => println!("unknown: {name}"),
    }
}

/// Two halves of the seeds, on two threads.
fn spread(matrix: &Matrix, make: &Make<'_>, seeds: u64) -> Figures {
    let [one, other] = std::thread::scope(|scope| {
        let half = seeds / 2;
        let other = scope.spawn(move || replay(matrix, make, half..seeds));
        let one = replay(matrix, make, 0..half);
        [one, other.join().unwrap()]
    });
    let both = |of: fn(&Figures) -> f64| {
        (of(&one) * one.seeds as f64 + of(&other) * other.seeds as f64) / seeds as f64
    };
    Figures {
        find_rate: both(|of| of.find_rate),
        regret: both(|of| of.regret),
        cells: both(|of| of.cells),
        cells_share: both(|of| of.cells_share),
        cost_share: both(|of| of.cost_share),
        claimed: both(|of| of.claimed),
        seeds,
    }
}

fn mean<T>(items: &[T], of: impl Fn(&T) -> f64) -> f64 {
    items.iter().map(of).sum::<f64>() / items.len() as f64
}

fn show(label: &str, bound: f64, figures: &[Figures], elimination: &[Figures], time: f64) {
    let find = mean(figures, |of| of.find_rate);
    let worst = figures.iter().map(|of| of.find_rate).fold(1.0, f64::min);
    let money = mean(figures, |of| of.cost_share);
    println!(
        "  {label:36} {bound:5.3} {find:6.3} {worst:6.3} {:6.4} {money:6.3} {:6.2} {:6.3} {:+6.3} {time:6.1}",
        mean(figures, |of| of.regret),
        money / mean(elimination, |of| of.cost_share),
        mean(figures, |of| of.cells_share),
        mean(figures, |of| of.claimed) - find
    );
}
