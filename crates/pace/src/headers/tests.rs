use super::*;
use std::cell::Cell;

type Headers = &'static [(&'static str, &'static str)];

/// 2025-01-01T00:00:00Z
const NOW: u64 = 1_735_689_600;

fn read(headers: &[(&str, &'static str)]) -> Quota {
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(NOW);
    let get = |name: &str| headers.iter().find(|(known, _)| *known == name).map(|(_, text)| *text);
    read_quota(get, now)
}

/// A reading: dimension, limit, remaining, reset in seconds, whether the reset is coarse.
type Row = (Dimension, f64, f64, Option<f64>, bool);

fn rows(quota: &Quota) -> Vec<Row> {
    let row = |reading: &QuotaReading| {
        let reset = reading.reset.map(|reset| reset.as_secs_f64());
        (reading.dimension, reading.limit, reading.remaining, reset, reading.coarse)
    };
    quota.readings.iter().map(row).collect()
}

use Dimension::{InputTokens, OutputTokens, Requests, Tokens};

#[test]
fn parses_the_headers_of_each_provider() {
    let table: [(&str, Headers, &[Row]); 14] = [
        (
            "OpenAI",
            &[
                ("x-ratelimit-limit-requests", "5000"),
                ("x-ratelimit-remaining-requests", "4999"),
                ("x-ratelimit-reset-requests", "12ms"),
                ("x-ratelimit-limit-tokens", "160000"),
                ("x-ratelimit-remaining-tokens", "159976"),
                ("x-ratelimit-reset-tokens", "6m0s"),
            ],
            &[
                (Requests, 5000.0, 4999.0, Some(0.012), false),
                (Tokens, 160_000.0, 159_976.0, Some(360.0), false),
            ],
        ),
        (
            "Azure",
            &[
                ("x-ratelimit-limit-requests", "100"),
                ("x-ratelimit-remaining-requests", "99"),
                ("x-ratelimit-reset-requests", "10"),
                ("x-ratelimit-limit-tokens", "100000"),
                ("x-ratelimit-remaining-tokens", "98000"),
            ],
            &[
                (Requests, 100.0, 99.0, Some(10.0), true),
                (Tokens, 100_000.0, 98_000.0, None, false),
            ],
        ),
        (
            "Anthropic",
            &[
                ("anthropic-ratelimit-requests-limit", "50"),
                ("anthropic-ratelimit-requests-remaining", "49"),
                ("anthropic-ratelimit-requests-reset", "2025-01-01T00:00:02Z"),
                ("anthropic-ratelimit-tokens-limit", "66000"),
                ("anthropic-ratelimit-tokens-remaining", "62000"),
                ("anthropic-ratelimit-tokens-reset", "2025-01-01T00:00:15Z"),
                ("anthropic-ratelimit-input-tokens-limit", "50000"),
                ("anthropic-ratelimit-input-tokens-remaining", "50000"),
                ("anthropic-ratelimit-input-tokens-reset", "2025-01-01T00:00:00Z"),
                ("anthropic-ratelimit-output-tokens-limit", "16000"),
                ("anthropic-ratelimit-output-tokens-remaining", "12000"),
                ("anthropic-ratelimit-output-tokens-reset", "2025-01-01T00:00:15.5Z"),
            ],
            &[
                (Requests, 50.0, 49.0, Some(2.0), true),
                (Tokens, 66_000.0, 62_000.0, Some(15.0), true),
                (InputTokens, 50_000.0, 50_000.0, None, false),
                (OutputTokens, 16_000.0, 12_000.0, Some(15.5), false),
            ],
        ),
        (
            "Groq",
            &[
                ("x-ratelimit-limit-requests", "14400"),
                ("x-ratelimit-remaining-requests", "14370"),
                ("x-ratelimit-reset-requests", "2m59.56s"),
                ("x-ratelimit-limit-tokens", "18000"),
                ("x-ratelimit-remaining-tokens", "17997"),
                ("x-ratelimit-reset-tokens", "7.66s"),
            ],
            &[
                (Requests, 14_400.0, 14_370.0, Some(179.56), false),
                (Tokens, 18_000.0, 17_997.0, Some(7.66), false),
            ],
        ),
        (
            "Mistral, by size",
            &[
                ("x-ratelimitbysize-limit-minute", "500000"),
                ("x-ratelimitbysize-remaining-minute", "467993"),
                ("x-ratelimitbysize-limit-month", "1000000000"),
                ("x-ratelimitbysize-remaining-month", "999000000"),
                ("ratelimitbysize-limit", "400000"),
                ("ratelimitbysize-query-cost", "32007"),
                ("ratelimitbysize-reset", "40"),
            ],
            &[(Tokens, 500_000.0, 467_993.0, Some(40.0), true)],
        ),
        (
            "Mistral, limit with its short name only",
            &[
                ("ratelimitbysize-limit", "500000"),
                ("x-ratelimitbysize-remaining-minute", "467993"),
                ("ratelimitbysize-reset", "40"),
            ],
            &[(Tokens, 500_000.0, 467_993.0, Some(40.0), true)],
        ),
        (
            "Mistral, short names only",
            &[
                ("ratelimitbysize-limit", "500000"),
                ("ratelimitbysize-remaining", "467993"),
                ("ratelimitbysize-reset", "40"),
            ],
            &[(Tokens, 500_000.0, 467_993.0, Some(40.0), true)],
        ),
        (
            "Mistral, newer",
            &[
                ("x-ratelimit-limit-tokens-minute", "5000000"),
                ("x-ratelimit-remaining-tokens-minute", "4999911"),
                ("x-ratelimit-tokens-query-cost", "52"),
                ("x-ratelimit-limit-req-minute", "720"),
                ("x-ratelimit-remaining-req-minute", "717"),
            ],
            &[
                (Tokens, 5_000_000.0, 4_999_911.0, None, false),
                (Requests, 720.0, 717.0, None, false),
            ],
        ),
        (
            "OpenRouter",
            &[
                ("x-ratelimit-limit", "20"),
                ("x-ratelimit-remaining", "0"),
                ("x-ratelimit-reset", "1735689660000"),
            ],
            &[(Requests, 20.0, 0.0, Some(60.0), false)],
        ),
        (
            "Together",
            &[
                ("x-ratelimit-limit", "10"),
                ("x-ratelimit-remaining", "9"),
                ("x-ratelimit-reset", "1"),
                ("x-tokenlimit-limit", "33333"),
                ("x-tokenlimit-remaining", "33000"),
            ],
            &[
                (Requests, 10.0, 9.0, Some(1.0), true),
                (Tokens, 33_333.0, 33_000.0, Some(1.0), true),
            ],
        ),
        (
            "Cerebras",
            &[
                ("x-ratelimit-limit-requests-day", "14400"),
                ("x-ratelimit-limit-tokens-minute", "60000"),
                ("x-ratelimit-remaining-requests-day", "14399"),
                ("x-ratelimit-remaining-tokens-minute", "59000"),
                ("x-ratelimit-reset-requests-day", "33011.5"),
                ("x-ratelimit-reset-tokens-minute", "11.25"),
            ],
            &[
                (Tokens, 60_000.0, 59_000.0, Some(11.25), false),
                (Requests, 14_400.0, 14_399.0, Some(33_011.5), false),
            ],
        ),
        (
            "IETF draft",
            &[
                ("ratelimit", r#""burst";r=50;t=30"#),
                ("ratelimit-policy", r#""daily";q=9000;w=86400, "burst";q=100;w=60"#),
            ],
            &[(Requests, 100.0, 50.0, Some(30.0), true)],
        ),
        (
            "early drafts",
            &[
                ("ratelimit-limit", "100, 100;w=60"),
                ("ratelimit-remaining", "50"),
                ("ratelimit-reset", "30"),
            ],
            &[(Requests, 100.0, 50.0, Some(30.0), true)],
        ),
        ("Gemini", &[("content-type", "application/json")], &[]),
    ];
    for (provider, headers, expected) in table {
        assert_eq!(rows(&read(headers)), expected, "{provider}");
    }
}

#[test]
fn invalid_values_are_omitted() {
    let table = [
        ("-1", "-1", None),
        ("0", "0", None),
        ("-5", "3", None),
        ("60", "-1", None),
        ("lots", "3", None),
        ("60", "some", None),
        ("60", "", None),
        ("NaN", "3", None),
        ("inf", "3", None),
        ("60", "inf", None),
        ("60", "0", Some((60.0, 0.0))),
        (" 60 ", " 3 ", Some((60.0, 3.0))),
        // A limit that was lowered a moment ago.
        ("60", "70", Some((60.0, 70.0))),
    ];
    for (limit, remaining, expected) in table {
        let quota = read(&[
            ("x-ratelimit-limit-requests", limit),
            ("x-ratelimit-remaining-requests", remaining),
            ("x-ratelimit-limit-tokens", "100"),
            ("x-ratelimit-remaining-tokens", "10"),
        ]);
        let mut expected_rows: Vec<Row> = Vec::new();
        expected_rows.extend(expected.map(|(limit, left)| (Requests, limit, left, None, false)));
        expected_rows.push((Tokens, 100.0, 10.0, None, false));
        assert_eq!(rows(&quota), expected_rows, "limit {limit:?}, remaining {remaining:?}");
    }
}

#[test]
fn limit_without_remainder_is_no_reading() {
    assert_eq!(rows(&read(&[("x-ratelimit-limit-requests", "60")])), []);
    assert_eq!(rows(&read(&[("x-ratelimit-remaining-requests", "60")])), []);
}

#[test]
fn parses_resets_in_every_format_and_omits_invalid_ones() {
    let table = [
        ("1s", Some((1.0, false))),
        ("1m30s", Some((90.0, false))),
        ("250us", Some((0.000_25, false))),
        (" 30 ", Some((30.0, true))),
        ("0.75", Some((0.75, false))),
        ("1735689630", Some((30.0, true))),
        ("1735689630250", Some((30.25, false))),
        ("2025-01-01T01:00:05+01:00", Some((5.0, true))),
        ("Wed, 01 Jan 2025 00:00:20 GMT", Some((20.0, true))),
        ("0", None),
        ("0s", None),
        ("-1", None),
        ("2024-12-31T23:59:59Z", None),
        ("1735689599000", None),
        ("1735689599", None),
        ("999999999999", None),
        ("1e22", None),
        ("9999-12-31T23:59:59Z", None),
        ("soon", None),
        ("", None),
    ];
    for (text, expected) in table {
        let quota = read(&[
            ("x-ratelimit-limit-requests", "60"),
            ("x-ratelimit-remaining-requests", "3"),
            ("x-ratelimit-reset-requests", text),
        ]);
        let (reset, coarse) = (expected.map(|(reset, _)| reset), expected.is_some_and(|(_, c)| c));
        assert_eq!(rows(&quota), [(Requests, 60.0, 3.0, reset, coarse)], "{text:?}");
    }
}

#[test]
fn first_valid_entry_of_a_dimension_wins() {
    let first = ("x-ratelimit-limit-requests", "60");
    let rest = [
        ("x-ratelimit-remaining-requests", "3"),
        ("x-ratelimit-limit", "20"),
        ("x-ratelimit-remaining", "19"),
        ("ratelimit", r#""burst";r=50;t=30"#),
        ("ratelimit-policy", r#""burst";q=100;w=60"#),
    ];
    let with = |first| [&[first], &rest[..]].concat();
    assert_eq!(rows(&read(&with(first))), [(Requests, 60.0, 3.0, None, false)]);
    let broken = ("x-ratelimit-limit-requests", "0");
    assert_eq!(rows(&read(&with(broken))), [(Requests, 20.0, 19.0, None, false)]);
}

#[test]
fn parses_the_draft_as_used_in_practice() {
    let table: [(&str, &str, &str, &[Row]); 13] = [
        (
            "a token as name",
            "default;r=5;t=3",
            "default;q=9;w=6",
            &[(Requests, 9.0, 5.0, Some(3.0), true)],
        ),
        (
            "separators in a name",
            r#""a;b, c";r=5"#,
            r#""a;b, c";q=9"#,
            &[(Requests, 9.0, 5.0, None, false)],
        ),
        (
            "the kind of window first",
            r#""api";r=5;t=3"#,
            r#""fixed window";"api";q=500;w=300"#,
            &[(Requests, 500.0, 5.0, Some(3.0), true)],
        ),
        (
            "several",
            r#""requests-minute";r=5;t=3, "input-tokens";r=6, "output-tokens";r=7, "tokens";r=8"#,
            r#""tokens";q=80, "output-tokens";q=70, "input-tokens";q=60, "requests-minute";q=50"#,
            &[
                (Requests, 50.0, 5.0, Some(3.0), true),
                (InputTokens, 60.0, 6.0, None, false),
                (OutputTokens, 70.0, 7.0, None, false),
                (Tokens, 80.0, 8.0, None, false),
            ],
        ),
        (
            "two of one kind",
            r#""a";r=5, "b";r=1"#,
            r#""a";q=9, "b";q=9"#,
            &[(Requests, 9.0, 5.0, None, false)],
        ),
        ("a unit", r#""a";r=5"#, r#""a";q=9;qu="tokens""#, &[(Tokens, 9.0, 5.0, None, false)]),
        ("another unit", r#""a";r=5"#, r#""a";q=9;qu="content-bytes""#, &[]),
        ("no policy", r#""a";r=5;t=3"#, "", &[]),
        ("policy of another limit", r#""a";r=5;t=3"#, r#""b";q=9;w=6"#, &[]),
        ("limit of zero", r#""a";r=0;t=3"#, r#""a";q=0;w=6"#, &[]),
        ("negative remainder", r#""a";r=-1;t=3"#, r#""a";q=9;w=6"#, &[]),
        ("never", r#""a";r=5;t=1e18"#, r#""a";q=9;w=6"#, &[(Requests, 9.0, 5.0, None, false)]),
        ("no reset", r#""a";r=5;t=0"#, r#""a";q=9;w=6"#, &[(Requests, 9.0, 5.0, None, false)]),
    ];
    for (what, limits, policies, expected) in table {
        let quota = read(&[("ratelimit", limits), ("ratelimit-policy", policies)]);
        assert_eq!(rows(&quota), expected, "{what}");
    }
}

#[test]
fn parses_retry_after() {
    let table: [(Headers, Option<u64>); 15] = [
        (&[("retry-after", "2")], Some(2000)),
        (&[("retry-after", "1.5")], Some(1500)),
        (&[("retry-after", "Wed, 01 Jan 2025 00:00:20 GMT")], Some(20_000)),
        (&[("retry-after-ms", "250")], Some(250)),
        (&[("retry-after-ms", "250"), ("retry-after", "1")], Some(250)),
        (&[("retry-after-ms", "0"), ("retry-after", "1")], Some(1000)),
        (&[("retry-after-ms", "soon"), ("retry-after", "1")], Some(1000)),
        (&[("retry-after-ms", "-5")], None),
        (&[("retry-after-ms", "1e22")], None),
        (&[("retry-after-ms", "1e22"), ("retry-after", "1")], Some(1000)),
        (&[("retry-after", "1e22")], None),
        (&[("retry-after", "0")], None),
        (&[("retry-after", "-1")], None),
        (&[("retry-after", "soon")], None),
        (&[("retry-after", "Tue, 31 Dec 2024 00:00:00 GMT")], None),
    ];
    for (headers, millis) in table {
        assert_eq!(read(headers).retry_after, millis.map(Duration::from_millis), "{headers:?}");
    }
}

#[test]
fn responses_without_headers_need_few_lookups() {
    let lookups = Cell::new(0);
    let get = |_: &str| {
        lookups.set(lookups.get() + 1);
        None
    };
    assert_eq!(read_quota(get, SystemTime::UNIX_EPOCH), Quota::default());
    assert!(lookups.get() <= 20, "{} lookups", lookups.get());
}
