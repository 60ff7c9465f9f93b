//! Which keys' values somebody reads for long, and who waits to change them.

use tokio::sync::watch;

/// The keys whose values are lent for long.
///
/// It is told while nobody has the keys, so whoever has them and is about to take such a value exclusively sees it, and can
/// [wait](Self::until_free) without holding up others. A key for which somebody waits is not lent again before that one had
/// it: readers that overlap would keep it for ever.
#[derive(Debug)]
pub(super) struct Lending(watch::Sender<Vec<Key>>);

// Invariant: there are readers, or somebody waits.
#[derive(Debug)]
struct Key {
    name: Box<[u8]>,
    readers: usize,
    waiting: usize,
}

impl Key {
    fn is_meant(&self, is_meant: impl Fn(&[u8]) -> bool) -> bool {
        self.readers > 0 && is_meant(&self.name)
    }
}

impl Lending {
    pub fn new() -> Self {
        Self(watch::Sender::new(Vec::new()))
    }

    /// Tells whether one of these keys is lent.
    pub fn is_lent(&self, is_meant: impl Fn(&[u8]) -> bool) -> bool {
        self.0.borrow().iter().any(|key| key.is_meant(&is_meant))
    }

    /// Tells whether somebody waits to change the value of a key, and it should not be lent again.
    pub fn is_awaited(&self, name: &[u8]) -> bool {
        self.0.borrow().iter().any(|key| *key.name == *name && key.waiting > 0)
    }

    /// Tells that a key is lent, until the answer is gone; `None` if somebody waits for it.
    pub fn begin(&self, name: &[u8]) -> Option<Lent<'_>> {
        let mut has_begun = true;
        self.0.send_modify(|keys| match keys.iter_mut().find(|key| *key.name == *name) {
            Some(key) if key.waiting > 0 => has_begun = false,
            Some(key) => key.readers += 1,
            None => keys.push(Key { name: name.into(), readers: 1, waiting: 0 }),
        });
        has_begun.then(|| Lent { lending: self, name: name.into() })
    }

    /// Returns one who waits for no key yet.
    pub fn waiter(&self) -> Waiter<'_> {
        Waiter { lending: self, names: Vec::new() }
    }

    /// Counts down for a key, and forgets it if nobody is about it any more.
    fn end(&self, name: &[u8], count: impl FnOnce(&mut Key)) {
        self.0.send_modify(|keys| {
            let at = keys.iter().position(|key| *key.name == *name).expect("it was told");
            count(&mut keys[at]);
            if keys[at].readers == 0 && keys[at].waiting == 0 {
                keys.swap_remove(at);
            }
        });
    }
}

/// A key is lent for long, until this is gone.
#[derive(Debug)]
pub(super) struct Lent<'l> {
    lending: &'l Lending,
    name: Box<[u8]>,
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        self.lending.end(&self.name, |key| key.readers -= 1);
    }
}

/// Who waits for keys: none of those that it has waited for is lent again before this is gone.
#[derive(Debug)]
pub(super) struct Waiter<'l> {
    lending: &'l Lending,
    names: Vec<Box<[u8]>>,
}

impl Waiter<'_> {
    /// Waits until none of these keys is lent. Others of them may be lent by then.
    pub async fn until_free(&mut self, is_meant: impl Fn(&[u8]) -> bool) {
        let mut lent = self.lending.0.subscribe();
        self.lending.0.send_if_modified(|keys| {
            for key in keys.iter_mut().filter(|key| key.is_meant(&is_meant)) {
                if !self.names.contains(&key.name) {
                    key.waiting += 1;
                    self.names.push(key.name.clone());
                }
            }
            // Nobody waits for that.
            false
        });
        _ = lent.wait_for(|keys| !keys.iter().any(|key| key.is_meant(&is_meant))).await;
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        for name in &self.names {
            self.lending.end(name, |key| key.waiting -= 1);
        }
    }
}
