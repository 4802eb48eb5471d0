//! Variance components of judged answers: cases, answers and the judge.

/// Variance components of judged answers, and the variance of the mean.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct VarianceComponents {
    /// Between cases.
    pub case: f64,
    /// Between answers to the same case. With one judging per answer it includes that of the judge.
    pub answer: f64,
    /// Between judgings of the same answer; absent with one judging per answer.
    pub judge: Option<f64>,
    /// Variance of the mean over all cases.
    pub mean_variance: f64,
}

/// Estimates the components of the variance of `values[case][answer][judging]` by a nested analysis of variance (Searle,
/// Casella & McCulloch 1992). Negative estimates become 0.
///
/// Absent unless the design is balanced, with at least two cases and two answers per case.
pub fn variance_components(values: &[Vec<Vec<f64>>]) -> Option<VarianceComponents> {
    let cases = values.len();
    let answers = values.first()?.len();
    let judgings = values.first()?.first()?.len();
    let is_balanced = values
        .iter()
        .all(|case| case.len() == answers && case.iter().all(|answer| answer.len() == judgings));
    if !is_balanced || cases < 2 || answers < 2 || judgings == 0 {
        return None;
    }
    let (c, t, j) = (cases as f64, answers as f64, judgings as f64);
    let (mut between_cases, mut between_answers, mut between_judgings) = (0.0, 0.0, 0.0);
    let answer_means: Vec<Vec<f64>> =
        values.iter().map(|case| case.iter().map(|answer| mean(answer)).collect()).collect();
    let case_means: Vec<f64> = answer_means.iter().map(|answers| mean(answers)).collect();
    let grand_mean = mean(&case_means);
    for ((case, answers), case_mean) in values.iter().zip(&answer_means).zip(&case_means) {
        between_cases += t * j * (case_mean - grand_mean).powi(2);
        for (answer, answer_mean) in case.iter().zip(answers) {
            between_answers += j * (answer_mean - case_mean).powi(2);
            between_judgings +=
                answer.iter().map(|value| (value - answer_mean).powi(2)).sum::<f64>();
        }
    }
    let of_cases = between_cases / (c - 1.0);
    let of_answers = between_answers / (c * (t - 1.0));
    let of_judgings = (judgings > 1).then(|| between_judgings / (c * t * (j - 1.0)));
    let case = ((of_cases - of_answers) / (t * j)).max(0.0);
    let answer = ((of_answers - of_judgings.unwrap_or(0.0)) / j).max(0.0);
    let judge = of_judgings.unwrap_or(0.0);
    Some(VarianceComponents {
        case,
        answer,
        judge: of_judgings,
        mean_variance: case / c + answer / (c * t) + judge / (c * t * j),
    })
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::near;

    /// `11 10 | 00 01`: cases of answers of judgings.
    fn parse(text: &str) -> Vec<Vec<Vec<f64>>> {
        let judgings =
            |answer: &str| answer.chars().map(|c| f64::from(u8::from(c == '1'))).collect();
        text.split('|').map(|case| case.split_whitespace().map(judgings).collect()).collect()
    }

    /// Reference values: from the mean squares .777778, .25 and .083333.
    #[test]
    fn agrees_with_the_example() {
        let split =
            variance_components(&parse("11 11 10 | 11 00 11 | 00 01 00 | 11 11 11")).unwrap();
        near(split.judge.unwrap(), 0.083333);
        near(split.answer, 0.083333);
        near(split.case, 0.087963);
        near(split.mean_variance, 0.032407);
    }

    #[test]
    fn single_judging_merges_judge_and_answer() {
        let split = variance_components(&parse("1 1 0 | 0 0 1 | 1 1 1")).unwrap();
        assert_eq!(split.judge, None);
        // Case means 2/3, 1/3, 1: MS_t = (2/3 + 2/3)/6 and MS_c = 3·(2/9)/2.
        near(split.answer, 4.0 / 18.0);
        near(split.case, (1.0 / 3.0 - 2.0 / 9.0) / 3.0);
    }

    #[test]
    fn negative_components_are_zero() {
        // Equal cases with different answers.
        let split = variance_components(&parse("11 00 | 11 00 | 00 11")).unwrap();
        assert_eq!(split.case, 0.0);
        assert!(split.answer > 0.0);
        // Judgings disagree as much as possible, answers not at all.
        assert_eq!(variance_components(&parse("10 01 | 01 10")).unwrap().answer, 0.0);
    }

    #[test]
    fn unbalanced_designs_have_no_components() {
        for text in ["", "11 11", "11 | 11", "11 11 | 11", "11 1 | 11 11"] {
            assert_eq!(variance_components(&parse(text)), None, "{text}");
        }
        assert_eq!(variance_components(&[]), None);
        assert_eq!(variance_components(&[vec![vec![]; 2], vec![vec![]; 2]]), None);
    }
}
