//! All providers together.

use super::{Contender, PaceRow};

/// Which providers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// Those that tell their limits in headers.
    Told,
    /// Those that do not, or tell lies.
    Untold,
    /// All.
    All,
}

/// One scheduler on a group of providers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary {
    /// The scheduler.
    pub contender: Contender,
    /// The providers.
    pub group: Group,
    /// How many there are.
    pub profiles: usize,
    /// Mean efficiency.
    pub mean: f64,
    /// Half of the providers are above.
    pub median: f64,
    /// One in twenty is below.
    pub fifth_percentile: f64,
    /// The worst run of all.
    pub worst: f64,
    /// Mean rejections per success.
    pub rejections_per_success: f64,
    /// Items lost.
    pub lost: u64,
}

/// Sums up, by scheduler and group; groups without a provider are left out.
pub fn summarise(rows: &[PaceRow]) -> Vec<Summary> {
    let mut contenders: Vec<Contender> = Vec::new();
    for row in rows {
        if !contenders.contains(&row.contender) {
            contenders.push(row.contender);
        }
    }
    let mut summaries = Vec::new();
    for group in [Group::Told, Group::Untold, Group::All] {
        for contender in &contenders {
            let of_group =
                rows.iter().filter(|row| row.contender == *contender).filter(|row| match group {
                    Group::Told => row.is_told,
                    Group::Untold => !row.is_told,
                    Group::All => true,
                });
            summaries.extend(summary(*contender, group, of_group.collect()));
        }
    }
    summaries
}

fn summary(contender: Contender, group: Group, rows: Vec<&PaceRow>) -> Option<Summary> {
    if rows.is_empty() {
        return None;
    }
    let mut efficiencies: Vec<f64> = rows.iter().map(|row| row.efficiency).collect();
    efficiencies.sort_by(f64::total_cmp);
    let mean = |part: fn(&PaceRow) -> f64| {
        rows.iter().map(|row| part(row)).sum::<f64>() / rows.len() as f64
    };
    Some(Summary {
        contender,
        group,
        profiles: rows.len(),
        mean: mean(|row| row.efficiency),
        median: efficiencies[efficiencies.len() / 2],
        fifth_percentile: efficiencies[efficiencies.len() / 20],
        worst: rows.iter().map(|row| row.worst).fold(f64::INFINITY, f64::min),
        rejections_per_success: mean(|row| row.rejections_per_success),
        lost: rows.iter().map(|row| row.lost).sum(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(contender: Contender, is_told: bool, efficiency: f64) -> PaceRow {
        PaceRow {
            profile: String::new(),
            is_told,
            contender,
            efficiency,
            worst: efficiency - 0.1,
            rejections_per_success: 1.0 - efficiency,
            lost: 1,
            seconds: 1.0,
            recovery_seconds: None,
        }
    }

    #[test]
    fn each_group_has_its_own_figures() {
        let auto = Contender::Auto;
        let rows = [
            row(auto, true, 1.0),
            row(auto, false, 0.5),
            row(auto, false, 0.7),
            row(auto, false, 0.9),
        ];
        let summaries = summarise(&rows);
        let groups: Vec<_> = summaries.iter().map(|one| (one.group, one.profiles)).collect();
        assert_eq!(groups, [(Group::Told, 1), (Group::Untold, 3), (Group::All, 4)]);
        let untold = summaries[1];
        assert!((untold.mean - 0.7).abs() < 1e-9);
        assert_eq!((untold.median, untold.fifth_percentile, untold.lost), (0.7, 0.5, 3));
        assert!((untold.worst - 0.4).abs() < 1e-9);
        assert!((untold.rejections_per_success - 0.3).abs() < 1e-9);
    }
}
