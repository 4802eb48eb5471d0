//! Test that no row gets the answer of another row from a damaged reply.
//!
//! Every value of an answer contains the id of its item as a mark. Replies are generated in all formats,
//! damaged at random, and read. An answer with the mark of another item is a failure, with one exception: the
//! damaged text may contain a complete, well-formed item with exactly that id and those values ([`strict`]),
//! which no reader can detect. A cut from the middle of one item to the same position in a later one has
//! this effect: it removes the later id and leaves a valid item under the earlier id.

mod generate;
mod strict;

use super::*;
use crate::task::FieldType;
use generate::TestItem;
use serde_json::json;

/// SplitMix64 random number generator: small, fast, and equal on all platforms.
pub(super) struct SplitMix(pub(super) u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `end`, which must not be 0.
    pub(super) fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    /// Returns true with probability `1 / times`.
    pub(super) fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }
}

/// Returns one of three tasks: only required fields, only optional fields, or fields with arbitrary objects,
/// which may contain ids.
fn task(kind: usize) -> Task {
    let optional = |name: &str, kind| Field { required: false, ..Field::new(name, kind) };
    let fields = match kind {
        0 => vec![
            Field::new("x", FieldType::String),
            Field::new("n", FieldType::Integer),
            Field::new("y", FieldType::String),
        ],
        1 => vec![
            optional("x", FieldType::String),
            optional("n", FieldType::Integer),
            Field { default: Some(json!([])), ..Field::new("tags", FieldType::Array) },
            optional("y", FieldType::String),
        ],
        _ => vec![
            Field::new("x", FieldType::String),
            optional("o", FieldType::Object),
            Field { items: FieldType::Object, ..optional("list", FieldType::Array) },
            optional("y", FieldType::String),
        ],
    };
    Task::new("x", fields)
}

/// Damages a text at random.
fn damage(text: &str, rng: &mut SplitMix) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for _ in 0..1 + rng.below(2) {
        if bytes.is_empty() {
            break;
        }
        let start = rng.below(bytes.len());
        let max_length = [2, 8, 40, bytes.len()][rng.below(4)];
        let end = (start + 1 + rng.below(max_length)).min(bytes.len());
        match rng.below(6) {
            0 => bytes.truncate(start),
            1 => drop(bytes.drain(start..end)),
            2 => {
                let copy = bytes[start..end].to_vec();
                let position = if rng.one_in(2) { end } else { rng.below(bytes.len()) };
                bytes.splice(position..position, copy);
            }
            3 => {
                // Swap two ranges.
                let other = end + rng.below(bytes.len() - end + 1);
                let last = (other + 1 + rng.below(max_length)).min(bytes.len());
                let swapped =
                    [&bytes[other..last], &bytes[end..other], &bytes[start..end]].concat();
                bytes.splice(start..last, swapped);
            }
            4 => {
                // Remove a character of the syntax, or a tag.
                let syntax: &[u8] = b"{}[]\"<>/:,-=&;";
                let offset = bytes.iter().skip(start).position(|byte| syntax.contains(byte));
                if let Some(offset) = offset {
                    let from = start + offset;
                    let tag = bytes[from..].iter().position(|byte| *byte == b'>');
                    let length = match (bytes[from], tag) {
                        (b'<', Some(length)) if rng.one_in(2) => length + 1,
                        _ => 1,
                    };
                    bytes.drain(from..from + length);
                }
            }
            _ => {
                // Remove a line.
                let is_end = |byte: &u8| *byte == b'\n';
                let from = bytes[..start].iter().rposition(is_end).map_or(0, |at| at + 1);
                let to =
                    bytes[start..].iter().position(is_end).map_or(bytes.len(), |at| start + at + 1);
                bytes.drain(from..to);
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Returns whether an answer contains a value of another item.
fn is_mixed(own: &TestItem, answer: &[Value], items: &[TestItem]) -> bool {
    let text = Value::from(answer).to_string();
    let mut others = items.iter().filter(|item| item.id != own.id);
    others.any(|other| text.contains(&other.mark()) || answer.contains(&json!(other.number())))
}

/// Damages this number of replies and returns the percentage of rows that still have answers.
fn attack(cases: u64, seed: u64) -> u64 {
    let (mut rows, mut answered, mut excused) = (0, 0, 0);
    for case in 0..cases {
        let mut rng = SplitMix(seed ^ case.wrapping_mul(0x2545_f491_4f6c_dd1d));
        let kind = rng.below(3);
        let task = task(kind);
        let actual = ReplyFormat::ALL[rng.below(3)];
        let items = generate::items(kind, 2 + rng.below(4), &mut rng);
        let ids: Vec<String> = items.iter().map(|item| item.id.clone()).collect();
        let requested = if rng.one_in(4) { ReplyFormat::ALL[rng.below(3)] } else { actual };
        let text = generate::reply(actual, &items, &mut rng);
        if requested == actual {
            let intact = align(&text, requested, &task, &ids)
                .unwrap_or_else(|problem| panic!("case {case}: {problem}\n{text}"));
            for (item, answer) in items.iter().zip(&intact.answers) {
                let expected = validate::validate_answer(&task.output, &item.fields);
                let expected = expected.map_err(ReplyItemError::Invalid);
                assert_eq!(*answer, expected, "case {case}, {}\n{text}", item.id);
            }
        }
        let text = damage(&text, &mut rng);
        let Ok(aligned) = align(&text, requested, &task, &ids) else {
            rows += items.len() as u64;
            continue;
        };
        for (item, answer) in items.iter().zip(&aligned.answers) {
            rows += 1;
            let Ok(answer) = answer else { continue };
            answered += 1;
            if is_mixed(item, answer, &items) {
                excused += 1;
                assert!(
                    strict::contains_item(&text, &task, &item.id, answer),
                    "case {case}: {} has {}\n{text}",
                    item.id,
                    Value::from(answer.as_slice())
                );
            }
        }
    }
    // Exceptions must be rare for the test to be meaningful.
    assert!(excused * 50 < answered, "{excused} of {answered} excused");
    answered * 100 / rows
}

/// After a change of a reader, run more cases with `DAMAGED_REPLIES=300000 DAMAGE_SEED=2`.
#[test]
fn damaged_reply_gives_no_row_the_answer_of_another() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let answered =
        attack(number("DAMAGED_REPLIES").unwrap_or(4000), number("DAMAGE_SEED").unwrap_or(1));
    assert!(answered >= 40, "{answered} of 100 rows have answers");
}
