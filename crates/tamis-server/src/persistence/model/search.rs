//! The searches of the model test. One search runs random worlds (processes on a simulated disk)
//! from a seed. A second search runs every order of steps of small worlds (few clients and steps).

use tamis_testing::Random;

use crate::persistence::log::state::FsyncPolicy;
use crate::persistence::model::{Caller, Op, Step, World};
use crate::persistence::sim_disk::Fault;

fn random_op(random: &mut Random) -> Op {
    match random.below(7) {
        6 => Op::Flush,
        0..3 => Op::Insert([random.below(6) as u32, random.below(6) as u32]),
        3 => Op::Increment("alone"),
        4 => Op::Remove("alone"),
        _ => Op::Transaction,
    }
}

/// Runs several processes, one after the other. Each process has clients, snapshots, faults and a
/// crash.
fn explore(seed: u64) -> Result<(), String> {
    let mut random = Random(seed);
    let sync = [FsyncPolicy::Always, FsyncPolicy::EverySecond, FsyncPolicy::Never][random.below(3)];
    let mut world = World::first(sync);
    for _ in 0..1 + random.below(3) {
        for _ in 0..1 + random.below(3) {
            let ops = (0..1 + random.below(4)).map(|_| random_op(&mut random)).collect();
            world.clients.push((Caller::Idle, ops));
        }
        world.saves = random.below(3);
        world.admits_apart = random.one_in(2);
        let is_small = random.one_in(3);
        if is_small {
            world.disk.limit_space(random.below(4000));
        } else if random.one_in(3) {
            world.disk.refuse_reservations();
        }
        let start = world.disk.operations();
        let mut has_fault = false;
        if random.one_in(3) {
            has_fault = true;
            let fault = if random.one_in(2) { Fault::Io } else { Fault::Full };
            world.disk.fail_at(start + random.below(40), fault);
        }
        if !random.one_in(3) {
            world.disk.end_at(start + random.below(60));
        }
        for _ in 0..400 {
            let steps = world.steps();
            if steps.is_empty() || world.disk.has_ended() {
                break;
            }
            world.do_step(steps[random.below(steps.len())]);
            if is_small && !has_fault && !world.disk.has_ended() {
                let error = world.core.failure();
                assert_eq!(error, None, "seed {seed}: no space for a change that was admitted");
            }
        }
        let is_power_loss = random.one_in(2);
        world = world.crash(is_power_loss, &mut random)?;
    }
    Ok(())
}

/// Returns the number of the thread that runs a step.
fn thread(step: Step) -> usize {
    match step {
        Step::TakeFileJob | Step::DoFileJob => 0,
        Step::TakeSync | Step::DoSync => 1,
        Step::Saver => 2,
        Step::Client(i) => 3 + i,
    }
}

/// Runs every sequence of steps of a small world that interrupts threads at most `interrupts`
/// times. Crashes each sequence before every disk operation. Returns the number of runs.
///
/// An interrupt means that the test switches threads although the current thread can run its next
/// step. Most bugs of concurrent programs need at most two interrupts (Musuvathi and Qadeer,
/// "Iterative Context Bounding for Systematic Testing", 2007). The number of sequences with few
/// interrupts is small enough to run all sequences.
fn explore_all(sync: FsyncPolicy, clients: &[&[Op]], saves: usize, interrupts: usize) -> usize {
    let mut choices: Vec<(usize, usize)> = Vec::new();
    let mut runs = 0;
    // Skip crashes in the steps that this sequence shares with the previous sequence, which has
    // already explored these crashes.
    let mut shared_steps = 0;
    loop {
        // Run the sequence to its end to count its disk operations. After the count, repeat the
        // sequence with a crash before each operation.
        let (mut crash_at, mut first) = (None, 0);
        loop {
            let mut world = World::first(sync);
            let start = world.disk.operations();
            world.clients = clients.iter().map(|ops| (Caller::Idle, ops.to_vec())).collect();
            world.saves = saves;
            if let Some(at) = crash_at {
                world.disk.end_at(start + at);
            }
            let (mut depth, mut last, mut left) = (0, None, interrupts);
            loop {
                if depth == shared_steps && crash_at.is_none() {
                    first = world.disk.operations() - start;
                }
                let mut steps = world.steps();
                if steps.is_empty() || world.disk.has_ended() {
                    break;
                }
                // The thread that ran the last step comes first in the list.
                steps.sort_by_key(|step| Some(thread(*step)) != last);
                let can_go_on = Some(thread(steps[0])) == last;
                if can_go_on && left == 0 {
                    steps.truncate(1);
                }
                if depth == choices.len() {
                    choices.push((0, steps.len()));
                }
                let choice = choices[depth].0;
                left -= usize::from(can_go_on && choice > 0);
                last = Some(thread(steps[choice]));
                world.do_step(steps[choice]);
                depth += 1;
            }
            let operations = world.disk.operations() - start;
            runs += 1;
            let mut random = Random(runs as u64);
            let is_power_loss = sync == FsyncPolicy::Always;
            if let Err(why) = world.crash(is_power_loss, &mut random) {
                panic!("{why}; choices {choices:?}, crash at {crash_at:?}, {sync:?}");
            }
            crash_at = Some(crash_at.map_or(first, |at| at + 1));
            if crash_at > Some(operations) {
                break;
            }
        }
        // Select the next sequence of steps.
        while choices.last().is_some_and(|(choice, count)| choice + 1 == *count) {
            choices.pop();
        }
        let Some((choice, _)) = choices.last_mut() else { return runs };
        *choice += 1;
        shared_steps = choices.len() - 1;
    }
}

#[test]
fn nothing_promised_is_lost_in_any_order_of_steps_faults_and_crashes() {
    // If the environment contains a seed, repeat the failed search with this seed.
    let seed = std::env::var("TAMIS_MODEL_SEED").ok().and_then(|text| text.parse().ok());
    if let Some(seed) = seed {
        return explore(seed).unwrap();
    }
    // `cargo xtask soak` sets the duration of the search. Each run of the search uses a different
    // seed.
    let seconds = std::env::var("TAMIS_MODEL_SECONDS").ok().and_then(|text| text.parse().ok());
    let (first, count) = match seconds {
        Some(_) => (u64::from(std::process::id()) * 1_000_003, u64::MAX),
        None => (0, 3000),
    };
    let (started, seconds) = (std::time::Instant::now(), seconds.unwrap_or(u64::MAX));
    for seed in (first..).take(usize::try_from(count).unwrap_or(usize::MAX)) {
        if started.elapsed().as_secs() >= seconds {
            break;
        }
        if let Err(why) = explore(seed) {
            panic!("seed {seed}: {why}");
        }
    }
}

const SYNCS: [FsyncPolicy; 2] = [FsyncPolicy::Always, FsyncPolicy::EverySecond];

#[test]
fn every_order_of_two_inserts_of_one_item_keeps_it() {
    for sync in SYNCS {
        let runs = explore_all(sync, &[&[Op::Insert([1, 2])], &[Op::Insert([1, 2])]], 0, 4);
        assert!(runs > 1000, "{sync:?}: {runs}");
    }
}

#[test]
fn every_order_of_a_rotation_and_a_transaction_keeps_it_whole() {
    for sync in SYNCS {
        let runs = explore_all(sync, &[&[Op::Transaction]], 1, 1);
        assert!(runs > 10_000, "{sync:?}: {runs}");
    }
}

#[test]
fn every_order_of_a_snapshot_and_a_flush_removes_the_keys_once() {
    for sync in SYNCS {
        let runs = explore_all(sync, &[&[Op::Flush]], 1, 1);
        assert!(runs > 5000, "{sync:?}: {runs}");
    }
}
