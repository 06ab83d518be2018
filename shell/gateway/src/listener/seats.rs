//! How many connections there are, whose they are, and which of them has to make room.
//!
//! A connection that was not authenticated yet costs its peer nothing, so there may be few of these, and the
//! oldest of the address with the most of them is closed when another one comes. Connections that were
//! authenticated are never closed for others.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use tokio::sync::Notify;

use super::Limits;

/// All connections.
#[derive(Debug)]
pub(super) struct Seats {
    limits: Limits,
    held: Mutex<Held>,
    freed: Notify,
}

#[derive(Debug, Default)]
struct Held {
    next: u64,
    total: usize,
    by_address: BTreeMap<IpAddr, Share>,
    /// How many each principal has that are authenticated.
    by_principal: BTreeMap<Arc<str>, usize>,
    /// Those that are not authenticated, the oldest first.
    waiting: BTreeMap<u64, Arc<Seat>>,
}

/// The connections of one address.
#[derive(Debug, Default)]
struct Share {
    total: usize,
    waiting: BTreeSet<u64>,
}

/// The place of one connection.
#[derive(Debug)]
pub(crate) struct Seat {
    id: u64,
    address: IpAddr,
    /// Whose it is, once one of its requests was authenticated.
    owner: OnceLock<Arc<str>>,
    /// Whether it is not counted any more, because it has to make room.
    given_up: AtomicBool,
    evicted: Notify,
    seats: std::sync::Weak<Seats>,
}

/// A place that is held for as long as the connection lives.
#[derive(Debug)]
pub(super) struct Taken(pub(super) Arc<Seat>);

impl Seats {
    pub(super) fn new(limits: Limits) -> Arc<Self> {
        Arc::new(Self {
            limits,
            held: Mutex::default(),
            freed: Notify::new(),
        })
    }

    /// A place for a connection of an address, at the cost of an older one that is not authenticated. None
    /// where the address has all it may have.
    pub(super) fn take(self: &Arc<Self>, address: IpAddr) -> Option<Taken> {
        let address = network(address);
        let mut held = self.lock();
        let Limits {
            connections,
            per_address,
            unauthenticated,
            unauthenticated_per_address,
            ..
        } = self.limits;
        let share = held.by_address.get(&address);
        let (own, own_waiting) = share.map_or((0, 0), |it| (it.total, it.waiting.len()));
        if (own >= per_address || own_waiting >= unauthenticated_per_address)
            && !held.evict_from(address)
        {
            return None;
        }
        if (held.total >= connections || held.waiting.len() >= unauthenticated) && !held.evict() {
            return None;
        }
        held.next += 1;
        let id = held.next;
        let seat = Arc::new(Seat {
            id,
            address,
            owner: OnceLock::new(),
            given_up: AtomicBool::new(false),
            evicted: Notify::new(),
            seats: Arc::downgrade(self),
        });
        held.total += 1;
        held.waiting.insert(id, Arc::clone(&seat));
        let share = held.by_address.entry(address).or_default();
        share.total += 1;
        share.waiting.insert(id);
        Some(Taken(seat))
    }

    /// Closes a connection that is not authenticated, because the system has no room for another one.
    pub(super) fn make_room(&self) -> bool {
        self.lock().evict()
    }

    /// Waits until there is a place, or a connection that can be closed for another one.
    pub(super) async fn room(&self) {
        loop {
            let freed = self.freed.notified();
            {
                let held = self.lock();
                if held.total < self.limits.connections || !held.waiting.is_empty() {
                    return;
                }
            }
            freed.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        // Counts are changed together, without anything in between that could panic.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    /// Closes the oldest connection of the address that has the most that are not authenticated.
    fn evict(&mut self) -> bool {
        let most = self
            .by_address
            .iter()
            .max_by_key(|(_, it)| it.waiting.len());
        let address = most.map(|(address, _)| *address);
        address.is_some_and(|address| self.evict_from(address))
    }

    /// Closes the oldest connection of an address that is not authenticated.
    fn evict_from(&mut self, address: IpAddr) -> bool {
        let oldest = self.by_address.get(&address);
        let oldest = oldest.and_then(|share| share.waiting.first().copied());
        let Some(seat) = oldest.and_then(|id| self.waiting.get(&id).cloned()) else {
            return false;
        };
        self.forget(&seat);
        seat.evicted.notify_one();
        true
    }

    /// Counts a connection no longer.
    fn forget(&mut self, seat: &Seat) {
        if seat.given_up.swap(true, Ordering::Relaxed) {
            return;
        }
        self.waiting.remove(&seat.id);
        self.total = self.total.saturating_sub(1);
        if let Some(share) = self.by_address.get_mut(&seat.address) {
            share.waiting.remove(&seat.id);
            share.total = share.total.saturating_sub(1);
            if share.total == 0 {
                self.by_address.remove(&seat.address);
            }
        }
        if let Some(owner) = seat.owner.get()
            && let Some(own) = self.by_principal.get_mut(owner)
        {
            *own = own.saturating_sub(1);
            if *own == 0 {
                self.by_principal.remove(owner);
            }
        }
    }
}

impl Seat {
    /// Says that a request of the connection was authenticated: it is not closed for others any more. False
    /// where its principal has all it may have; then it stays as it was.
    #[must_use]
    pub(crate) fn authenticate(&self, principal: &Arc<str>) -> bool {
        if self.is_authenticated() {
            return true;
        }
        let Some(seats) = self.seats.upgrade() else {
            return true;
        };
        let mut held = seats.lock();
        // What has to make room is not counted any more.
        if self.given_up.load(Ordering::Relaxed) {
            return true;
        }
        let own = held.by_principal.get(principal).copied().unwrap_or(0);
        if own >= seats.limits.per_principal {
            return false;
        }
        if self.owner.set(Arc::clone(principal)).is_err() {
            return true;
        }
        held.by_principal.insert(Arc::clone(principal), own + 1);
        held.waiting.remove(&self.id);
        if let Some(share) = held.by_address.get_mut(&self.address) {
            share.waiting.remove(&self.id);
        }
        true
    }

    pub(super) fn is_authenticated(&self) -> bool {
        self.owner.get().is_some()
    }

    /// Waits until the connection has to make room for others.
    pub(super) async fn evicted(&self) {
        self.evicted.notified().await;
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        if let Some(seats) = self.0.seats.upgrade() {
            seats.lock().forget(&self.0);
            seats.freed.notify_one();
        }
    }
}

/// What counts as one address: a network of 64 bits in IPv6, which one peer has as a rule.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => {
            let network = u128::from(address) & !u128::from(u64::MAX);
            IpAddr::V6(Ipv6Addr::from(network))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seats(connections: usize, per_address: usize, waiting: usize, own: usize) -> Arc<Seats> {
        Seats::new(Limits {
            connections,
            per_address,
            unauthenticated: waiting,
            unauthenticated_per_address: own,
            ..Limits::default()
        })
    }

    fn at(last: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, last])
    }

    fn is_out(taken: &Taken) -> bool {
        taken.0.given_up.load(Ordering::Relaxed)
    }

    #[test]
    fn the_oldest_of_the_busiest_address_makes_room() {
        let seats = seats(100, 100, 4, 3);
        let honest = seats.take(at(1)).unwrap();
        let rude: Vec<Taken> = (0..3).map(|_| seats.take(at(2)).unwrap()).collect();
        // The address has its share: its own oldest goes.
        let fourth = seats.take(at(2)).unwrap();
        assert!(is_out(&rude[0]) && !is_out(&honest));
        // All have their share: the busiest address makes room.
        let other = seats.take(at(3)).unwrap();
        assert!(is_out(&rude[1]) && !is_out(&honest) && !is_out(&other));
        drop((rude, fourth, honest, other));
        let held = seats.lock();
        assert_eq!(
            (held.total, held.waiting.len(), held.by_address.len()),
            (0, 0, 0)
        );
    }

    #[test]
    fn authenticated_connections_stay() {
        let seats = seats(3, 2, 3, 3);
        let agent = seats.take(at(1)).unwrap();
        assert!(agent.0.authenticate(&"ada".into()));
        let second = seats.take(at(1)).unwrap();
        assert!(second.0.authenticate(&"ada".into()));
        // One address has its two, and neither can be closed.
        assert!(seats.take(at(1)).is_none());
        let rude = seats.take(at(2)).unwrap();
        let newer = seats.take(at(3)).unwrap();
        assert!(is_out(&rude));
        assert!(newer.0.authenticate(&"ben".into()));
        assert!(seats.take(at(4)).is_none());
        assert!(!is_out(&agent) && !is_out(&second) && !is_out(&newer));
        assert!(!seats.make_room());
    }

    #[test]
    fn one_principal_leaves_room_for_others() {
        let seats = Seats::new(Limits {
            connections: 10,
            per_address: 10,
            per_principal: 2,
            ..Limits::default()
        });
        let eve: Arc<str> = "eve".into();
        let mut held: Vec<Taken> = (1..4).map(|at_| seats.take(at(at_)).unwrap()).collect();
        let taken: Vec<bool> = held.iter().map(|it| it.0.authenticate(&eve)).collect();
        assert_eq!(taken, [true, true, false]);
        assert!(held[0].0.authenticate(&eve), "it is counted once");
        assert!(!held[2].0.is_authenticated(), "others may take its place");
        let bob = seats.take(at(1)).unwrap();
        assert!(bob.0.authenticate(&"bob".into()));
        drop(held.remove(0));
        assert!(held[1].0.authenticate(&eve), "there is room again");
        drop((held, bob));
        assert!(seats.lock().by_principal.is_empty());
    }

    #[test]
    fn one_network_is_one_address() {
        let text = |it: &str| network(it.parse().unwrap());
        assert_eq!(text("2001:db8::1"), text("2001:db8::ffff:1"));
        assert_ne!(text("2001:db8::1"), text("2001:db8:0:1::1"));
        assert_eq!(text("::ffff:192.0.2.1"), at(1));
    }
}
