//! The whole probe against the simulated provider, in virtual time.

use super::*;
use crate::{ClientConfig, ModelConfig};
use bakeoff_sim::Profile;

/// A client whose simulated models have that profile.
fn client(profile: &str) -> Client {
    let text = format!("[[profile]]\n{profile}\n");
    let profile = Profile::parse_file_text(&text).unwrap().remove(0);
    let simulator = bakeoff_sim::Config { profile: Some(profile), ..Default::default() };
    Client::new(ClientConfig { simulator, ..ClientConfig::default() })
}

fn model() -> Model {
    Model::resolve(&ModelConfig::named("sim", "echo"), &|_| None).unwrap()
}

async fn probed_with(profile: &str, config: ProbeConfig) -> ProbeReport {
    probe(&client(profile), &model(), &config, &mut |_| {}).await.unwrap()
}

async fn probed(profile: &str) -> ProbeReport {
    probed_with(profile, ProbeConfig::default()).await
}

fn is_near(found: f64, truth: f64) -> bool {
    (found / truth - 1.0).abs() <= 0.1
}

/// How many of these calls are rejected with the settings that were recommended.
async fn rejections(profile: &str, advice: Advice, calls: u64) -> u64 {
    let client = client(profile);
    let model = model().with_limits(advice.limits());
    let config = ProbeConfig::default();
    let contexts: Vec<CallContext<'_>> = (0..calls).map(|_| CallContext::default()).collect();
    let mut all: FuturesUnordered<_> = (0..calls)
        .zip(&contexts)
        .map(|(number, context)| client.call(&model, config.request(number), context))
        .collect();
    while let Some(call) = all.next().await {
        call.unwrap();
    }
    client.simulator.stats().refused.get(&429).copied().unwrap_or(0)
}

#[tokio::test(start_paused = true)]
async fn caps_are_found_and_kept_below() {
    let latencies = [
        "latency = { kind = \"fixed\", ms = 300 }",
        "latency = { kind = \"fixed\", ms = 20 }",
        "latency = { kind = \"lognormal\", median_ms = 800, sigma = 0.5 }",
    ];
    for latency in latencies {
        for cap in [1, 2, 3, 5, 12, 20, 40, 70, 100, 200] {
            for reject in [0, 10] {
                let profile = format!("{latency}\nconcurrency = {cap}\nreject_ms = {reject}");
                let report = probed(&profile).await;
                let Limit::Cap { connections } = report.limit else {
                    panic!("{profile}: {report:#?}")
                };
                assert!(is_near(connections, f64::from(cap)), "{profile}: {report:#?}");
                assert!(report.is_confirmed && report.stop.is_none(), "{profile}: {report:#?}");
                let advice = report.advice.unwrap();
                assert_eq!(rejections(&profile, advice, 900).await, 0, "{profile}: {advice}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn rates_are_found_and_kept_below() {
    let limits = [
        (5.0, "requests = { rate_per_s = 5, burst = 5 }"),
        (2.0, "requests = { rate_per_s = 2, burst = 1 }"),
        (5.0, "requests = { rate_per_s = 5, burst = 1 }"),
        (8.0, "requests = { rate_per_s = 8, burst = 1 }"),
        (5.0, "requests = { rate_per_s = 5, burst = 2 }"),
        (5.0, "requests = { rate_per_s = 5, burst = 20 }"),
        (20.0, "requests = { rate_per_s = 20, burst = 20 }"),
        (20.0, "requests = { rate_per_s = 20, burst = 20 }\nheaders = \"openai\""),
        (
            20.0,
            "requests = { rate_per_s = 20, burst = 20 }\nheaders = \"anthropic\"\nretry_after = \"ceil\"",
        ),
        (5.0, "requests = { rate_per_s = 5, burst = 5 }\nretry_after = \"exact\""),
        (50.0, "requests = { rate_per_s = 50, burst = 5 }"),
        (5.0, "window = { requests = 50, seconds = 10 }"),
        (5.0, "window = { requests = 50, seconds = 10, phase_s = 6 }\nretry_after = \"ceil\""),
        (10.0, "window = { requests = 10, seconds = 1 }"),
    ];
    let mut wrong = Vec::new();
    let latencies = [
        "{ kind = \"fixed\", ms = 300 }",
        "{ kind = \"fixed\", ms = 100 }",
        "{ kind = \"fixed\", ms = 30 }",
        "{ kind = \"lognormal\", median_ms = 300, sigma = 0.3 }",
        "{ kind = \"lognormal\", median_ms = 800, sigma = 0.4 }",
        "{ kind = \"lognormal\", median_ms = 2000, sigma = 0.5 }",
    ];
    for latency in latencies {
        for (rate, limit) in limits {
            let profile = format!("latency = {latency}\nreject_ms = 2\n{limit}");
            let report = probed(&profile).await;
            let rejected = match report.advice {
                Some(advice) => rejections(&profile, advice, 400).await,
                None => 0,
            };
            let is_right =
                matches!(report.limit, Limit::Rate { per_second } if is_near(per_second, rate));
            if !is_right || rejected > 0 {
                wrong.push(format!("{profile}: {}", summary(&report, rejected)));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What a failed test needs to show.
fn summary(report: &ProbeReport, rejected: u64) -> String {
    let levels: Vec<String> = (report.levels.iter())
        .map(|l| format!("{} {}: {}/{}", l.purpose.as_str(), l.connections, l.accepted, l.sent))
        .collect();
    let advice = report.advice.map(|advice| advice.to_string());
    format!(
        "{:?} {advice:?} confirmed {} stop {:?} rejected afterwards {rejected}; {}; {:.1} s",
        report.limit,
        report.is_confirmed,
        report.stop,
        levels.join(", "),
        report.seconds
    )
}

#[tokio::test(start_paused = true)]
async fn what_was_not_reached_is_said_and_headers_help() {
    let latency = "latency = { kind = \"fixed\", ms = 100 }";
    let config = ProbeConfig { max_connections: 16, ..ProbeConfig::default() };
    let report = probed_with(latency, config.clone()).await;
    assert_eq!(report.limit, Limit::NotReached { connections: 16 });
    let line = report.advice.unwrap().to_string();
    assert_eq!(line, "limits = { strategy = \"fixed\", connections = 16 }");

    let minute = "requests = { rate_per_s = 10, burst = 600 }\nheaders = \"openai\"";
    let report = probed_with(&format!("{latency}\n{minute}"), config).await;
    let limits = report.advice.unwrap().limits();
    assert!((560..=580).contains(&limits.rpm.unwrap()), "{limits:?}");
    assert!(is_near(report.told[0].per_minute().unwrap(), 600.0), "{:?}", report.told);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_only_gets_slower_has_a_knee() {
    let profile = "latency = { kind = \"fixed\", ms = 100 }\nknee = { k = 10 }";
    let report = probed(profile).await;
    let Limit::Knee { connections } = report.limit else { panic!("{report:#?}") };
    assert!((7.0..=18.0).contains(&connections), "{connections}");
}

#[tokio::test(start_paused = true)]
async fn bounds_are_kept_and_named() {
    let latency = "latency = { kind = \"fixed\", ms = 100 }";
    let usual = ProbeConfig::default;
    let few = probed_with(latency, ProbeConfig { max_requests: 20, ..usual() }).await;
    assert_eq!((few.requests, few.stop), (20, Some(Stop::Requests)));
    assert_eq!(few.limit, Limit::NotReached { connections: 4 });

    let time = Duration::from_millis(450);
    let short = probed_with(latency, ProbeConfig { max_time: time, ..usual() }).await;
    assert_eq!(short.stop, Some(Stop::Time));
    assert!(short.seconds < 0.7, "{}", short.seconds);

    let prices = bakeoff_core::Prices {
        input: NanoDollars(1_000_000_000),
        output: NanoDollars(1_000_000_000),
        ..bakeoff_core::Prices::default()
    };
    let config = ModelConfig { prices: Some(prices), ..ModelConfig::named("sim", "echo") };
    let priced = Model::resolve(&config, &|_| None).unwrap();
    let most = NanoDollars(1_000_000);
    let config = ProbeConfig { max_cost: Some(most), ..usual() };
    let report = probe(&client(latency), &priced, &config, &mut |_| {}).await.unwrap();
    assert_eq!(report.stop, Some(Stop::Cost));
    assert!(report.cost.unwrap().0 > 0 && report.cost.unwrap().0 <= most.0, "{report:#?}");
}

#[tokio::test(start_paused = true)]
async fn what_does_not_work_at_all_ends_the_probe() {
    let latency = "latency = { kind = \"fixed\", ms = 100 }";
    let quota = probed(&format!("{latency}\ndaily_quota = 9")).await;
    assert_eq!(quota.stop, Some(Stop::Quota));
    let down = probed(&format!("{latency}\noutages = [{{ from_s = 1, to_s = 9000 }}]")).await;
    assert_eq!(down.stop, Some(Stop::Failures), "{down:#?}");
    let client = client(latency);
    let wrong = Model::resolve(&ModelConfig::named("sim", "fault-401"), &|_| None).unwrap();
    let error = probe(&client, &wrong, &ProbeConfig::default(), &mut |_| {}).await.unwrap_err();
    assert_eq!(error.failure.kind, ErrorKind::Auth);
    assert_eq!(client.simulator.stats().requests, 1);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_sent_while_the_provider_asks_for_silence() {
    // A minute each time: three rejections at once are two minutes of silence.
    let profile = "latency = { kind = \"fixed\", ms = 100 }\nretry_after = \"60s\"\n\
                   requests = { rate_per_s = 1, burst = 5 }";
    let report = probed(profile).await;
    assert_eq!(report.longest_wait, Some(Duration::from_secs(60)));
    let rejected: u32 = report.levels.iter().map(|level| level.rejected).sum();
    assert!(rejected <= 12, "{}", summary(&report, 0));
}
