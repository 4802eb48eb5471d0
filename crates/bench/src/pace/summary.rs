//! Summary over all providers.

use super::{Contender, PaceRow};

/// Group of providers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// Providers that announce their limits in headers.
    Announced,
    /// Providers without headers, or with wrong ones.
    Unannounced,
    /// All providers.
    All,
}

/// Results of one scheduler on a group of providers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PaceSummary {
    /// Scheduler.
    pub contender: Contender,
    /// Group of providers.
    pub group: Group,
    /// Number of providers.
    pub profiles: usize,
    /// Mean efficiency.
    pub mean: f64,
    /// Median efficiency.
    pub median: f64,
    /// 5th percentile of efficiency.
    pub fifth_percentile: f64,
    /// Efficiency of the worst run.
    pub worst: f64,
    /// Mean rejections per success.
    pub rejections_per_success: f64,
    /// Items lost.
    pub lost: u64,
}

/// Summarises by scheduler and group; empty groups are omitted.
pub fn summarise(rows: &[PaceRow]) -> Vec<PaceSummary> {
    let mut contenders: Vec<Contender> = Vec::new();
    for row in rows {
        if !contenders.contains(&row.contender) {
            contenders.push(row.contender);
        }
    }
    let mut summaries = Vec::new();
    for group in [Group::Announced, Group::Unannounced, Group::All] {
        for contender in &contenders {
            let of_group =
                rows.iter().filter(|row| row.contender == *contender).filter(|row| match group {
                    Group::Announced => row.announces_limits,
                    Group::Unannounced => !row.announces_limits,
                    Group::All => true,
                });
            summaries.extend(summary(*contender, group, of_group.collect()));
        }
    }
    summaries
}

fn summary(contender: Contender, group: Group, rows: Vec<&PaceRow>) -> Option<PaceSummary> {
    if rows.is_empty() {
        return None;
    }
    let mut efficiencies: Vec<f64> = rows.iter().map(|row| row.efficiency).collect();
    efficiencies.sort_by(f64::total_cmp);
    let mean = |part: fn(&PaceRow) -> f64| {
        rows.iter().map(|row| part(row)).sum::<f64>() / rows.len() as f64
    };
    Some(PaceSummary {
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

    fn row(contender: Contender, announces_limits: bool, efficiency: f64) -> PaceRow {
        PaceRow {
            profile: String::new(),
            announces_limits,
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
    fn groups_are_summarised_separately() {
        let auto = Contender::Auto;
        let rows = [
            row(auto, true, 1.0),
            row(auto, false, 0.5),
            row(auto, false, 0.7),
            row(auto, false, 0.9),
        ];
        let summaries = summarise(&rows);
        let groups: Vec<_> = summaries.iter().map(|one| (one.group, one.profiles)).collect();
        assert_eq!(groups, [(Group::Announced, 1), (Group::Unannounced, 3), (Group::All, 4)]);
        let unannounced = summaries[1];
        assert!((unannounced.mean - 0.7).abs() < 1e-9);
        assert_eq!(
            (unannounced.median, unannounced.fifth_percentile, unannounced.lost),
            (0.7, 0.5, 3)
        );
        assert!((unannounced.worst - 0.4).abs() < 1e-9);
        assert!((unannounced.rejections_per_success - 0.3).abs() < 1e-9);
    }
}
