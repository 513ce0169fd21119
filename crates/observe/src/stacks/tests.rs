use std::time::Instant;

use super::*;

#[inline(never)]
fn outer_of_the_sampled(end: Instant) -> u64 {
    let mut sum = 0;
    while Instant::now() < end {
        sum += std::hint::black_box(inner_of_the_sampled(sum));
    }
    sum
}

#[inline(never)]
fn inner_of_the_sampled(from: u64) -> u64 {
    (0..2_000_000u64).fold(from, |sum, n| std::hint::black_box(sum * 3 + n % 7) % 1_000)
}

#[test]
fn a_busy_functions_stack_is_unwound_and_named() {
    // As long as it takes: the machine may be busy with other things.
    let enough = thread_cpu_seconds() + 0.5;
    let busy = |_| {
        outer_of_the_sampled(Instant::now() + Duration::from_millis(300));
        thread_cpu_seconds() >= enough
    };
    let sampled = match watch(vec![std::process::id() as i32], busy) {
        Ok(sampled) => sampled,
        Err(why) => {
            return fingerpost_testing::skipped(why);
        }
    };
    let (found, left) = sampled.name(Limits {
        cpu: Duration::from_secs(60),
        until: Instant::now() + Duration::from_secs(60),
    });
    let found = found.expect("samples");
    assert_eq!(left.sentence(), None);
    let named = |s: &Stack| {
        s.frames
            .iter()
            .map(|f| found.functions[*f as usize].clone())
            .collect::<Vec<_>>()
    };
    let place = |names: &[String], what: &str| names.iter().position(|n| n.contains(what));
    let whole = found.stacks.iter().map(named).any(|names| {
        place(&names, "outer_of_the_sampled")
            .zip(place(&names, "inner_of_the_sampled"))
            .is_some_and(|(outer, inner)| outer < inner)
    });
    assert!(
        whole,
        "{:#?}",
        found.stacks.iter().take(3).map(named).collect::<Vec<_>>()
    );
    assert!(
        found.samples >= found.stacks.iter().map(|s| s.samples).sum::<u64>()
            && found.self_cost > 0.0
    );
}

#[test]
fn the_most_frequent_stacks_are_kept_and_the_others_counted() {
    let names: Vec<String> = (0..MOST_STACKS + 10).map(|i| format!("f{i}")).collect();
    let counts = (0..names.len())
        .map(|i| (vec![0, i as u32], if i == 7 { 9 } else { 1 }))
        .collect();
    let found = folded(counts, &names).unwrap();
    assert_eq!(
        (found.stacks.len(), found.stacks[0].samples, found.others),
        (MOST_STACKS, 9, 10)
    );
    let first = &found.stacks[0];
    assert_eq!(
        first
            .frames
            .iter()
            .map(|f| found.functions[*f as usize].as_str())
            .collect::<Vec<_>>(),
        ["f0", "f7"]
    );
    assert_eq!(folded(HashMap::new(), &names), None);
}

#[test]
fn a_child_of_the_service_is_its_own_and_a_stranger_is_not() {
    let (mut ours, mut others) = (HashSet::from([std::process::id() as i32]), HashSet::new());
    let mut child = std::process::Command::new("sleep")
        .arg("60")
        .spawn()
        .unwrap();
    assert!(
        is_ours(child.id() as i32, &mut ours, &mut others) && !is_ours(1, &mut ours, &mut others)
    );
    assert!(!is_ours(0, &mut ours, &mut others) && others.contains(&1));
    child.kill().unwrap();
    child.wait().unwrap();
}
