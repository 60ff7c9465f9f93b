#![allow(clippy::all)]

    use super::search::Search;
    use super::table::Table;
    use std::time::Instant;

    fn next(x: &mut u64) -> u64 {
        *x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (*x ^ *x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    #[test]
    fn proto_load() {
        for b in [2, 3] {
            for width in [5, 6, 8, 12] {
                for half in [500_000, 5_000_000] {
                        let t = Table::new(b, width, half);
                        let (mut low, mut sum) = (1.0_f64, 0.0);
                        let runs = if half < 10_000 { 500_000 / half } else if half < 1_000_000 { 3 } else { 1 };
                        for seed in 0..runs {
                            let mut words = vec![0; t.len_words() as usize];
                            let mut q = Search::default();
                            let mut x = seed * 1_000_003;
                            let mut n = 0;
                            loop { match t.insert(&mut words, &mut q, t.key(next(&mut x))) { Err(_) => break, Ok(super::table::Added::Saturated) => {}, _ => n += 1 } }
                            let load = n as f64 / t.slots() as f64;
                            low = low.min(load);
                            sum += load;
                        }
                        println!("b {b} width {width} half {half}: mean {:.4} low {low:.4}", sum / runs as f64);
                }
            }
        }
    }

    #[test]
    fn proto_decile() {
        for (b, n, load) in [(2, 1_000_000_u64, 0.95), (3, 1_000_000, 0.97)] {
            let t = Table::new(b, 12, (n as f64 / load / 2.0) as u64);
            let mut x = 7;
            let mut words = vec![0; t.len_words() as usize];
            let mut q = Search::default();
            let hashes: Vec<u64> = (0..n).map(|_| next(&mut x)).collect();
            let mut best = [f64::MAX; 10];
            let mut exp = [0.0; 10];
            for _ in 0..5 {
                words.fill(0);
                for d in 0..10 {
                    
                    let m = n as usize / 10;
                    let at = Instant::now();
                    for &h in &hashes[d * m..(d + 1) * m] { t.insert(&mut words, &mut q, t.key(h)).unwrap(); }
                    best[d] = best[d].min(at.elapsed().as_secs_f64() * 1e9 / m as f64);
                    
                }
            }
            println!("b {b} mean {:.1} {:?} {:?}", best.iter().sum::<f64>() / 10.0, best.map(|x| x.round()), exp);
        }
    }

    #[test]
    fn proto_batch() {
        use super::Cuckoo;
        for (b, width, n, load) in [(2, 8, 1_000_000_u64, 0.95), (2, 12, 1_000_000, 0.95), (2, 12, 10_000, 0.95), (2, 16, 1_000_000, 0.95), (3, 12, 1_000_000, 0.98)] {
            let t = Table::new(b, width, (n as f64 / load / 2.0) as u64);
            let mut x = 7;
            let hashes: Vec<u64> = (0..n).map(|_| next(&mut x)).collect();
            let mut answers = vec![0; n.div_ceil(64) as usize];
            let mut c = Cuckoo::empty(t, crate::Hasher::default()).unwrap();
            let mut best = [f64::MAX; 13];
            let reps = if n < 100_000 { 200 } else { 10 };
            for _ in 0..reps {
                let mut k = 0;
                let m = n as usize / 640 * 64;
                c.words_mut().fill(0);
                c.items = Some(0);
                for d in 0..10 {
                    let hs = &hashes[d * m..(d + 1) * m];
                    let at = Instant::now();
                    c.insert_hashes(hs, &mut answers[..m / 64]).unwrap();
                    best[k] = best[k].min(at.elapsed().as_secs_f64() * 1e9 / m as f64); k += 1;
                }
                let at = Instant::now();
                c.contains_hashes(&hashes, &mut answers);
                best[k] = best[k].min(at.elapsed().as_secs_f64() * 1e9 / n as f64); k += 1;
                let at = Instant::now();
                let mut h = 0;
                for &x in &hashes { h += u64::from(c.contains_hash(x)); }
                assert!(h > 9 * n / 10);
                best[k] = best[k].min(at.elapsed().as_secs_f64() * 1e9 / n as f64); k += 1;
                let at = Instant::now();
                c.remove_hashes(&hashes, &mut answers);
                best[k] = best[k].min(at.elapsed().as_secs_f64() * 1e9 / n as f64);
            }
            println!("b {b} width {width} n {n}: insert {:.1} {:?} contains batch {:.2} single {:.2} remove {:.2}", best[..10].iter().sum::<f64>() / 10.0, best[..10].iter().map(|x| x.round()).collect::<Vec<_>>(), best[10], best[11], best[12]);
        }
    }

    #[test]
    fn proto_bloom() {
        use crate::{Bloom, Filter as _, Insert as _};
        for n in [10_000_u64, 1_000_000] {
            let mut x = 7;
            let hashes: Vec<u64> = (0..n).map(|_| next(&mut x)).collect();
            let t = Table::new(2, 12, (n as f64 / 0.95 / 2.0) as u64);
            let mut q = Search::default();
            let mut words = vec![0; t.len_words() as usize];
            for &h in &hashes { t.insert(&mut words, &mut q, t.key(h)).unwrap(); }
            let mut bloom: Bloom = Bloom::for_items(n, 0.001).unwrap();
            let mut answers = vec![0; n.div_ceil(64) as usize];
            let mut best = [f64::MAX; 5];
            let mut c = 0;
            for _ in 0..(if n < 100_000 { 500 } else { 7 }) {
                let mut k = 0;
                let mut time = |f: &mut dyn FnMut()| { let at = Instant::now(); f(); best[k] = best[k].min(at.elapsed().as_secs_f64() * 1e9 / n as f64); k += 1; };
                time(&mut || for &h in &hashes { bloom.insert_hash(h); });
                time(&mut || for &h in &hashes { c += u64::from(bloom.contains_hash(h)); });
                time(&mut || bloom.contains_hashes(&hashes, &mut answers));
                time(&mut || for &h in &hashes { c += u64::from(t.contains(&words, h)); });
                time(&mut || for &h in &hashes { c += t.key(h).starts[1]; });
            }
            println!("b n {n} bloom insert {:.2} contains {:.2} batch {:.2} cuckoo contains {:.2} key {:.2} {c}", best[0], best[1], best[2], best[3], best[4]);
        }
    }

    #[test]
    fn proto_tiny() {
        for b in [2, 3, 4] {
            for width in [8, 12] {
                for half in [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64, 128, 256, 512, 1024, 5000] {
                    let t = Table::new(b, width, half);
                    let runs = (4_000_000 / (half + 8)).max(2000);
                    let mut words = vec![0; t.len_words() as usize];
                    let mut q = Search::default();
                    let mut x = 0;
                    let mut fails: Vec<u64> = (0..runs).map(|_| {
                        words.fill(0);
                        let mut n = 0;
                        // Distinct items, saturated ones count as in.
                        while n < 4 * t.slots() && t.insert(&mut words, &mut q, t.key(next(&mut x))).is_ok() { n += 1 }
                        n
                    }).collect();
                    fails.sort();
                    let mean = fails.iter().sum::<u64>() as f64 / runs as f64;
                    let sd = (fails.iter().map(|&n| (n as f64 - mean).powi(2)).sum::<f64>() / runs as f64).sqrt();
                    let q = |d: f64| fails[(runs as f64 * d) as usize];
                    println!("b {b} width {width} starts {half} slots {} runs {runs}: min {} 1e-4 {} 1e-3 {} 1e-2 {} mean {mean:.2} sd {sd:.2} sd/sqrt {:.3}", t.slots(), fails[0], q(1e-4), q(1e-3), q(1e-2), sd / mean.sqrt());
                }
            }
        }
    }

    #[test]
    fn proto_speed() {
        let mut x = 1;
        for (b, width) in [(2, 8), (2, 12), (2, 16), (2, 32), (3, 12), (4, 12)] {
            for n in [10_000_u64, 1_000_000, 10_000_000] {
                let load = if b == 2 { 0.95 } else { 0.98 };
                let t = Table::new(b, width, (n as f64 / load / 2.0) as u64);
                let hashes: Vec<u64> = (0..n).map(|_| next(&mut x)).collect();
                let absent: Vec<u64> = (0..n).map(|_| next(&mut x)).collect();
                let mut q = Search::default();
                let mut words = vec![0; t.len_words() as usize];
                let (mut ins, mut hit, mut miss) = (f64::MAX, f64::MAX, f64::MAX);
                let mut fp = 0;
                for _ in 0..3 {
                    words.fill(0);
                    
                    let at = Instant::now();
                    for &h in &hashes { t.insert(&mut words, &mut q, t.key(h)).unwrap(); }
                    ins = ins.min(at.elapsed().as_secs_f64() * 1e9 / n as f64);
                    let at = Instant::now();
                    let mut c = 0;
                    for &h in &hashes { c += u64::from(t.contains(&words, h)); }
                    assert_eq!(c, n);
                    hit = hit.min(at.elapsed().as_secs_f64() * 1e9 / n as f64);
                    let at = Instant::now();
                    fp = 0;
                    for &h in &absent { fp += u64::from(t.contains(&words, h)); }
                    miss = miss.min(at.elapsed().as_secs_f64() * 1e9 / n as f64);
                }
                println!("b {b} width {width} n {n}: insert {ins:.1} hit {hit:.2} miss {miss:.2} ns; rate {:.6} bits/item {:.3} = log2 + {:.3}",
                    fp as f64 / n as f64,
                    words.len() as f64 * 64.0 / n as f64, words.len() as f64 * 64.0 / n as f64 + (fp as f64 / n as f64).log2());
            }
        }
    }
