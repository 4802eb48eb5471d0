//! SVG plot of score against cost, or against latency if a cost is unknown.

use bakeoff_core::printable;
use bakeoff_select::{RankedCombination, SearchOutcome};
use std::fmt::Write;

const WIDTH: f64 = 880.0;
const HEIGHT: f64 = 520.0;
/// Margins for axis labels: left, right, top, bottom.
const MARGIN: [f64; 4] = [64.0, 24.0, 64.0, 56.0];
/// Line height of the list below the plot.
const LINE_HEIGHT: f64 = 18.0;
/// Maximum number of entries in the list below the plot.
const MAX_LISTED: usize = 20;

/// Plots adjusted score against cost (against latency if a cost is unknown) with the intervals of the plain scores, the
/// Pareto front and the winner. A list below names the combinations of the front, numbered as in the ranking.
pub fn selection_svg(selection: &SearchOutcome, title: &str) -> String {
    let shown: Vec<&RankedCombination> =
        selection.ranking.iter().filter(|ranked| score(ranked).is_some()).collect();
    let mut front: Vec<&RankedCombination> = shown
        .iter()
        .copied()
        .filter(|ranked| {
            selection.front.contains(&ranked.combo) || ranked.combo == selection.winner
        })
        .collect();
    let measure = Measure::of(&shown);
    front.sort_by(|one, two| measure.value(one).total_cmp(&measure.value(two)));
    let listed = &front[..front.len().min(MAX_LISTED)];
    let axes = Axes {
        measure,
        across: Axis::measure(measure, &shown, MARGIN[0], WIDTH - MARGIN[1]),
        up: Axis::score(&shown, HEIGHT - MARGIN[3], MARGIN[2]),
    };
    let height = HEIGHT + LINE_HEIGHT * (listed.len() as f64 + 1.5);
    let mut svg = String::new();
    // Writing to a `String` cannot fail.
    let _ = draw(&mut svg, title, height, &axes, selection, &shown, listed);
    svg
}

/// Both axes of a plot.
struct Axes {
    measure: Measure,
    across: Axis,
    up: Axis,
}

impl Axes {
    /// Returns the coordinates of a combination.
    fn point(&self, ranked: &RankedCombination) -> (f64, f64) {
        let score = score(ranked).unwrap_or_default();
        (self.across.position(self.measure.value(ranked)), self.up.position(score))
    }
}

/// Quantity of the horizontal axis.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Measure {
    Cost,
    Latency,
}

impl Measure {
    /// Returns the cost, or the latency if a cost is unknown.
    fn of(shown: &[&RankedCombination]) -> Measure {
        let is_known = shown.iter().all(|ranked| ranked.cost.is_some());
        if is_known { Measure::Cost } else { Measure::Latency }
    }

    fn value(self, ranked: &RankedCombination) -> f64 {
        match self {
            Measure::Cost => ranked.cost.unwrap_or_default().as_dollars(),
            Measure::Latency => ranked.latency,
        }
    }

    fn text(self, value: f64) -> String {
        match self {
            Measure::Cost => dollars(value),
            Measure::Latency => seconds(value),
        }
    }
}

fn seconds(value: f64) -> String {
    // At most three digits, without trailing zeros.
    let text = format!("{value:.3}");
    format!("{} s", text.trim_end_matches('0').trim_end_matches('.'))
}

/// Describes the cost and the latency of a combination.
fn expense(ranked: &RankedCombination) -> String {
    match ranked.cost {
        Some(cost) => format!("{} each, {:.2} s", dollars(cost.as_dollars()), ranked.latency),
        None => format!("cost unknown, {:.2} s", ranked.latency),
    }
}

/// Scale from values to coordinates.
struct Axis {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
    log: bool,
    ticks: Vec<f64>,
}

impl Axis {
    fn position(&self, value: f64) -> f64 {
        let at = |value: f64| if self.log { value.max(self.low).ln() } else { value };
        let share = (at(value) - at(self.low)) / (at(self.high) - at(self.low));
        self.from + share.clamp(0.0, 1.0) * (self.to - self.from)
    }

    /// Returns the horizontal axis; logarithmic if the values differ widely.
    fn measure(measure: Measure, shown: &[&RankedCombination], from: f64, to: f64) -> Axis {
        let values = || shown.iter().map(|ranked| measure.value(ranked));
        let high = values().fold(0.0, f64::max);
        let low = values().filter(|value| *value > 0.0).fold(high, f64::min);
        let log = low > 0.0 && high > 8.0 * low && values().all(|value| value > 0.0);
        if log {
            let (low, high) = (low / 1.2, high * 1.2);
            let first = low.log10().floor() as i32;
            let decades = (first..=high.log10().ceil() as i32).map(|power| 10_f64.powi(power));
            let ticks = decades.flat_map(|decade| [1.0, 2.0, 5.0].map(|times| times * decade));
            let ticks = ticks.filter(|tick| *tick >= low && *tick <= high).collect();
            return Axis { low, high, from, to, log, ticks };
        }
        let high = if high > 0.0 { high * 1.08 } else { 1.0 };
        Axis { low: 0.0, high, from, to, log, ticks: round_ticks(0.0, high) }
    }

    fn score(shown: &[&RankedCombination], from: f64, to: f64) -> Axis {
        let ends = shown.iter().flat_map(|ranked| {
            let score = score(ranked).unwrap_or_default();
            let [low, high] = bounds(ranked).unwrap_or([score, score]);
            [low.min(score), high.max(score)]
        });
        let (low, high) = ends.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
            (low.min(value), high.max(value))
        });
        let (low, high) = if low <= high { (low, high) } else { (0.0, 1.0) };
        let padding = (0.04 * (high - low)).max(0.02);
        let (low, high) = (low - padding, high + padding);
        Axis { low, high, from, to, log: false, ticks: round_ticks(low, high) }
    }
}

/// Returns the adjusted score, or the plain one in files of older versions.
fn score(ranked: &RankedCombination) -> Option<f64> {
    ranked.adjusted_score.or(ranked.score)
}

/// Returns the interval of the score. With a weighted objective the interval belongs to another quantity and is
/// omitted.
fn bounds(ranked: &RankedCombination) -> Option<[f64; 2]> {
    ranked.interval.filter(|_| ranked.is_score())
}

/// Returns about five round numbers.
fn round_ticks(low: f64, high: f64) -> Vec<f64> {
    let rough = (high - low) / 5.0;
    let power = 10_f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|times| times * power);
    let step = step.into_iter().find(|step| *step >= 0.8 * rough).unwrap_or(10.0 * power);
    let first = (low / step).ceil() as i64;
    let last = (high / step).floor() as i64;
    (first..=last).map(|times| times as f64 * step).collect()
}

/// Formats an amount without trailing zeros.
fn dollars(cost: f64) -> String {
    match cost {
        0.0 => "$0".to_owned(),
        cost if cost >= 0.01 => format!("${}", trimmed(format!("{cost:.4}"))),
        cost => format!("${}", trimmed(format!("{cost:.8}"))),
    }
}

fn trimmed(number: String) -> String {
    number.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn escaped(text: &str) -> String {
    printable(text)
        .chars()
        .map(|letter| match letter {
            '<' => "&lt;".to_owned(),
            '>' => "&gt;".to_owned(),
            '&' => "&amp;".to_owned(),
            '"' => "&quot;".to_owned(),
            other => other.to_string(),
        })
        .collect()
}

const STYLE: &str = "\
text{font:12px system-ui,sans-serif;fill:#333}\
.title{font-size:16px;font-weight:600}\
.grid{stroke:#e5e5e5}\
.interval{stroke-width:1.5;opacity:.45}\
.other{fill:#8a8f98;stroke:#8a8f98}\
.eliminated{fill:#d0d3d8;stroke:#d0d3d8}\
.front{fill:#1f6feb;stroke:#1f6feb}\
.best{fill:#1a7f37;stroke:#1a7f37}\
.line{fill:none;stroke:#1f6feb;stroke-dasharray:4 3}";

fn draw(
    svg: &mut String,
    title: &str,
    height: f64,
    plot: &Axes,
    selection: &SearchOutcome,
    shown: &[&RankedCombination],
    listed: &[&RankedCombination],
) -> std::fmt::Result {
    writeln!(
        svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         width=\"{WIDTH}\" height=\"{height}\" role=\"img\">"
    )?;
    writeln!(svg, "<title>{}</title><style>{STYLE}</style>", escaped(title))?;
    writeln!(svg, "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>")?;
    let left = MARGIN[0];
    writeln!(svg, "<text class=\"title\" x=\"{left}\" y=\"26\">{}</text>", escaped(title))?;
    writeln!(
        svg,
        "<text x=\"{left}\" y=\"46\">green: chosen · blue: no other is better, cheaper and faster \
         at once · pale: eliminated · bars: 95 % intervals \
         on the evaluated cases</text>"
    )?;
    axes(svg, plot)?;
    let points: Vec<String> = (listed.iter())
        .filter(|ranked| selection.front.contains(&ranked.combo))
        .map(|ranked| {
            let (x, y) = plot.point(ranked);
            format!("{x:.1},{y:.1}")
        })
        .collect();
    writeln!(svg, "<polyline class=\"line\" points=\"{}\"/>", points.join(" "))?;
    // More important points are drawn last, on top of the others.
    let kind = |ranked: &RankedCombination| match ranked {
        ranked if ranked.combo == selection.winner => (3, "best", 6.5),
        ranked if selection.front.contains(&ranked.combo) => (2, "front", 5.0),
        ranked if ranked.eliminated => (0, "eliminated", 3.5),
        _ => (1, "other", 4.0),
    };
    let mut order: Vec<&RankedCombination> = shown.to_vec();
    order.sort_by_key(|ranked| kind(ranked).0);
    for ranked in order {
        let (_, class, radius) = kind(ranked);
        let score = score(ranked).unwrap_or_default();
        let (x, y) = plot.point(ranked);
        writeln!(svg, "<g class=\"{class}\">")?;
        if let Some([low, high]) = bounds(ranked) {
            let (low, high) = (plot.up.position(low), plot.up.position(high));
            writeln!(
                svg,
                "<line class=\"interval\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{low:.1}\" \
                 y2=\"{high:.1}\"/>"
            )?;
        }
        writeln!(
            svg,
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\"><title>{}: {score:.3} on {} cells, \
             {}</title></circle></g>",
            escaped(&ranked.name),
            ranked.n,
            expense(ranked),
        )?;
    }
    let rank = |ranked: &RankedCombination| {
        let position = selection.ranking.iter().position(|other| other.combo == ranked.combo);
        position.map_or(0, |position| position + 1)
    };
    for (index, ranked) in listed.iter().enumerate() {
        let ((x, y), rank) = (plot.point(ranked), rank(ranked));
        writeln!(svg, "<text x=\"{:.1}\" y=\"{:.1}\">{rank}</text>", x + 8.0, y - 6.0)?;
        let best = if ranked.combo == selection.winner { ", chosen" } else { "" };
        writeln!(
            svg,
            "<text x=\"{left}\" y=\"{:.1}\">{rank}  {}: {:.3}, {} each{best}</text>",
            HEIGHT + LINE_HEIGHT * (index as f64 + 1.0),
            escaped(&ranked.name),
            score(ranked).unwrap_or_default(),
            plot.measure.text(plot.measure.value(ranked)),
        )?;
    }
    writeln!(svg, "</svg>")
}

fn axes(svg: &mut String, Axes { measure, across, up }: &Axes) -> std::fmt::Result {
    for tick in &across.ticks {
        let (x, y) = (across.position(*tick), up.from);
        writeln!(
            svg,
            "<line class=\"grid\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{:.1}\" y2=\"{y:.1}\"/>\
             <text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            up.to,
            y + 18.0,
            measure.text(*tick),
        )?;
    }
    for tick in &up.ticks {
        let (x, y) = (across.from, up.position(*tick));
        writeln!(
            svg,
            "<line class=\"grid\" x1=\"{x:.1}\" x2=\"{:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            across.to,
            x - 8.0,
            y + 4.0,
            trimmed(format!("{tick:.3}")),
        )?;
    }
    let middle = (across.from + across.to) / 2.0;
    writeln!(
        svg,
        "<text x=\"{middle:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
        up.from + 40.0,
        match measure {
            Measure::Cost => "cost of a task",
            Measure::Latency => "latency of a task",
        }
    )?;
    let middle = (up.from + up.to) / 2.0;
    writeln!(
        svg,
        "<text transform=\"translate(16 {middle:.1}) rotate(-90)\" \
         text-anchor=\"middle\">score</text>"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::selection::table::tests::selection;
    use quick_xml::Reader;
    use quick_xml::events::Event;

    /// Returns the names of all elements; fails for invalid XML.
    fn elements(svg: &str) -> Vec<String> {
        let mut reader = Reader::from_str(svg);
        let mut names = Vec::new();
        loop {
            match reader.read_event().unwrap() {
                Event::Start(tag) | Event::Empty(tag) => {
                    names.push(String::from_utf8(tag.name().as_ref().to_vec()).unwrap());
                }
                Event::Eof => return names,
                _ => {}
            }
        }
    }

    #[test]
    fn every_scored_combination_has_a_point_with_an_escaped_name() {
        let mut found = selection();
        found.ranking[1].name = "planner=<a&b>\u{1b} + solver=\"x\"".to_owned();
        (found.ranking[2].score, found.ranking[2].adjusted_score) = (None, None);
        let svg = selection_svg(&found, "S & T");
        let names = elements(&svg);
        let count = |name: &str| names.iter().filter(|one| *one == name).count();
        assert_eq!((count("circle"), count("polyline")), (2, 1));
        assert!(svg.contains("planner=&lt;a&amp;b&gt; + solver=&quot;x&quot;: 0.750"), "{svg}");
        assert!(svg.contains("class=\"best\"") && svg.contains("<title>S &amp; T</title>"));
    }

    #[test]
    fn empty_rankings_and_zero_costs_are_drawn() {
        let mut found = selection();
        found.ranking.clear();
        assert_eq!(elements(&selection_svg(&found, "")).first().unwrap(), "svg");
        let mut found = selection();
        for (ranked, cost) in found.ranking.iter_mut().zip([0, 0, 1]) {
            ranked.cost = Some(bakeoff_core::NanoDollars(cost));
            ranked.interval = None;
        }
        let svg = selection_svg(&found, "x");
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }

    #[test]
    fn widely_differing_costs_use_a_logarithmic_axis() {
        let mut found = selection();
        for (ranked, cost) in found.ranking.iter_mut().zip([1_000_000, 10_000_000, 100_000_000]) {
            ranked.cost = Some(bakeoff_core::NanoDollars(cost));
        }
        let shown: Vec<&RankedCombination> = found.ranking.iter().collect();
        let axis = Axis::measure(Measure::Cost, &shown, 0.0, 100.0);
        assert!(axis.log);
        let near = |cost: f64, position: f64| (axis.position(cost) - position).abs() < 1e-9;
        assert!(near(0.01, 50.0) && axis.ticks.contains(&0.05), "{:?}", axis.ticks);
    }

    #[test]
    fn unknown_cost_turns_the_axis_into_latency() {
        let mut found = selection();
        found.ranking[0].cost = None;
        let svg = selection_svg(&found, "x");
        assert!(svg.contains("latency of a task") && !svg.contains("cost of a task"), "{svg}");
        assert!(
            svg.contains("cost unknown, 1.50 s") && svg.contains("1.5 s each, chosen"),
            "{svg}"
        );
    }

    #[test]
    fn ticks_are_round() {
        assert_eq!(round_ticks(0.0, 1.0), [0.0, 0.2, 0.4, 0.6000000000000001, 0.8, 1.0]);
        assert_eq!(round_ticks(12.0, 48.0), [20.0, 30.0, 40.0]);
    }
}
