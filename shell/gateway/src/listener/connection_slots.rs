//! Counts connections by address and principal, and decides which one must make room.
//!
//! An unauthenticated connection costs its peer nothing. So only few of them are allowed, and a new one closes
//! the oldest connection of the address that has the most of them. Authenticated connections are never closed to
//! make room.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use tokio::sync::Notify;

use super::ListenerLimits;

/// All connections.
#[derive(Debug)]
pub(super) struct ConnectionSlots {
    limits: ListenerLimits,
    slots: Mutex<SlotTable>,
    slot_freed: Notify,
}

#[derive(Debug, Default)]
struct SlotTable {
    next: u64,
    total: usize,
    by_address: BTreeMap<IpAddr, AddressSlots>,
    /// The number of authenticated connections of each principal.
    by_principal: BTreeMap<Arc<str>, usize>,
    /// The unauthenticated connections, oldest first.
    unauthenticated: BTreeMap<u64, Arc<ConnectionSlot>>,
}

/// The connections of one address.
#[derive(Debug, Default)]
struct AddressSlots {
    total: usize,
    unauthenticated: BTreeSet<u64>,
}

/// The place of one connection.
#[derive(Debug)]
pub(crate) struct ConnectionSlot {
    id: u64,
    address: IpAddr,
    /// Its principal, once one of its requests was authenticated.
    owner: OnceLock<Arc<str>>,
    /// Whether it is no longer counted because it must make room.
    is_evicted: AtomicBool,
    eviction: Notify,
    slots: std::sync::Weak<ConnectionSlots>,
}

/// A place that is held as long as the connection lives.
#[derive(Debug)]
pub(super) struct SlotGuard(pub(super) Arc<ConnectionSlot>);

impl ConnectionSlots {
    pub(super) fn new(limits: ListenerLimits) -> Arc<Self> {
        Arc::new(Self {
            limits,
            slots: Mutex::default(),
            slot_freed: Notify::new(),
        })
    }

    /// Takes a place for a connection from an address; may close an older, unauthenticated one. `None` if the address
    /// has reached its limit.
    pub(super) fn acquire(self: &Arc<Self>, address: IpAddr) -> Option<SlotGuard> {
        let address = network_prefix(address);
        let mut table = self.lock();
        let ListenerLimits {
            connections,
            per_address,
            unauthenticated,
            unauthenticated_per_address,
            ..
        } = self.limits;
        let share = table.by_address.get(&address);
        let (own, own_waiting) = share.map_or((0, 0), |it| (it.total, it.unauthenticated.len()));
        if (own >= per_address || own_waiting >= unauthenticated_per_address)
            && !table.evict_from(address)
        {
            return None;
        }
        if (table.total >= connections || table.unauthenticated.len() >= unauthenticated)
            && !table.evict()
        {
            return None;
        }
        table.next += 1;
        let id = table.next;
        let slot = Arc::new(ConnectionSlot {
            id,
            address,
            owner: OnceLock::new(),
            is_evicted: AtomicBool::new(false),
            eviction: Notify::new(),
            slots: Arc::downgrade(self),
        });
        table.total += 1;
        table.unauthenticated.insert(id, Arc::clone(&slot));
        let share = table.by_address.entry(address).or_default();
        share.total += 1;
        share.unauthenticated.insert(id);
        Some(SlotGuard(slot))
    }

    /// Closes an unauthenticated connection, because the system has no room for another one.
    pub(super) fn evict_one(&self) -> bool {
        self.lock().evict()
    }

    /// Waits until there is a free place, or a connection that can be closed for another one.
    pub(super) async fn wait_for_slot(&self) {
        loop {
            let freed = self.slot_freed.notified();
            {
                let table = self.lock();
                if table.total < self.limits.connections || !table.unauthenticated.is_empty() {
                    return;
                }
            }
            freed.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, SlotTable> {
        // The counts change together, and nothing between the changes can panic.
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SlotTable {
    /// Closes the oldest connection of the address with the most unauthenticated ones.
    fn evict(&mut self) -> bool {
        let most = self
            .by_address
            .iter()
            .max_by_key(|(_, it)| it.unauthenticated.len());
        let address = most.map(|(address, _)| *address);
        address.is_some_and(|address| self.evict_from(address))
    }

    /// Closes the oldest unauthenticated connection of an address.
    fn evict_from(&mut self, address: IpAddr) -> bool {
        let oldest = self.by_address.get(&address);
        let oldest = oldest.and_then(|share| share.unauthenticated.first().copied());
        let Some(slot) = oldest.and_then(|id| self.unauthenticated.get(&id).cloned()) else {
            return false;
        };
        self.remove(&slot);
        slot.eviction.notify_one();
        true
    }

    /// Stops counting a connection.
    fn remove(&mut self, slot: &ConnectionSlot) {
        if slot.is_evicted.swap(true, Ordering::Relaxed) {
            return;
        }
        self.unauthenticated.remove(&slot.id);
        self.total = self.total.saturating_sub(1);
        if let Some(share) = self.by_address.get_mut(&slot.address) {
            share.unauthenticated.remove(&slot.id);
            share.total = share.total.saturating_sub(1);
            if share.total == 0 {
                self.by_address.remove(&slot.address);
            }
        }
        if let Some(owner) = slot.owner.get()
            && let Some(own) = self.by_principal.get_mut(owner)
        {
            *own = own.saturating_sub(1);
            if *own == 0 {
                self.by_principal.remove(owner);
            }
        }
    }
}

impl ConnectionSlot {
    /// Marks the connection as authenticated, so that it is no longer closed for others. Returns false and changes
    /// nothing if its principal has reached its limit.
    #[must_use]
    pub(crate) fn authenticate(&self, principal: &Arc<str>) -> bool {
        if self.is_authenticated() {
            return true;
        }
        let Some(slots) = self.slots.upgrade() else {
            return true;
        };
        let mut table = slots.lock();
        // A connection that must make room is no longer counted.
        if self.is_evicted.load(Ordering::Relaxed) {
            return true;
        }
        let own = table.by_principal.get(principal).copied().unwrap_or(0);
        if own >= slots.limits.per_principal {
            return false;
        }
        if self.owner.set(Arc::clone(principal)).is_err() {
            return true;
        }
        table.by_principal.insert(Arc::clone(principal), own + 1);
        table.unauthenticated.remove(&self.id);
        if let Some(share) = table.by_address.get_mut(&self.address) {
            share.unauthenticated.remove(&self.id);
        }
        true
    }

    pub(super) fn is_authenticated(&self) -> bool {
        self.owner.get().is_some()
    }

    /// Waits until the connection must make room for others.
    pub(super) async fn wait_for_eviction(&self) {
        self.eviction.notified().await;
    }
}

impl Drop for SlotGuard {
    fn drop(&mut self) {
        if let Some(slots) = self.0.slots.upgrade() {
            slots.lock().remove(&self.0);
            slots.slot_freed.notify_one();
        }
    }
}

/// What counts as one address: in IPv6 a network of 64 bits, which one peer usually controls.
fn network_prefix(address: IpAddr) -> IpAddr {
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

    fn slots(
        connections: usize,
        per_address: usize,
        waiting: usize,
        own: usize,
    ) -> Arc<ConnectionSlots> {
        ConnectionSlots::new(ListenerLimits {
            connections,
            per_address,
            unauthenticated: waiting,
            unauthenticated_per_address: own,
            ..ListenerLimits::default()
        })
    }

    fn at(last: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, last])
    }

    fn is_out(taken: &SlotGuard) -> bool {
        taken.0.is_evicted.load(Ordering::Relaxed)
    }

    #[test]
    fn the_oldest_of_the_busiest_address_makes_room() {
        let slots = slots(100, 100, 4, 3);
        let honest = slots.acquire(at(1)).unwrap();
        let rude: Vec<SlotGuard> = (0..3).map(|_| slots.acquire(at(2)).unwrap()).collect();
        // The address has reached its limit: its own oldest connection is closed.
        let fourth = slots.acquire(at(2)).unwrap();
        assert!(is_out(&rude[0]) && !is_out(&honest));
        // All places are taken: the busiest address makes room.
        let other = slots.acquire(at(3)).unwrap();
        assert!(is_out(&rude[1]) && !is_out(&honest) && !is_out(&other));
        drop((rude, fourth, honest, other));
        let table = slots.lock();
        assert_eq!(
            (
                table.total,
                table.unauthenticated.len(),
                table.by_address.len()
            ),
            (0, 0, 0)
        );
    }

    #[test]
    fn authenticated_connections_stay() {
        let slots = slots(3, 2, 3, 3);
        let agent = slots.acquire(at(1)).unwrap();
        assert!(agent.0.authenticate(&"ada".into()));
        let second = slots.acquire(at(1)).unwrap();
        assert!(second.0.authenticate(&"ada".into()));
        // One address has its two connections, and neither can be closed.
        assert!(slots.acquire(at(1)).is_none());
        let rude = slots.acquire(at(2)).unwrap();
        let newer = slots.acquire(at(3)).unwrap();
        assert!(is_out(&rude));
        assert!(newer.0.authenticate(&"ben".into()));
        assert!(slots.acquire(at(4)).is_none());
        assert!(!is_out(&agent) && !is_out(&second) && !is_out(&newer));
        assert!(!slots.evict_one());
    }

    #[test]
    fn one_principal_leaves_room_for_others() {
        let slots = ConnectionSlots::new(ListenerLimits {
            connections: 10,
            per_address: 10,
            per_principal: 2,
            ..ListenerLimits::default()
        });
        let eve: Arc<str> = "eve".into();
        let mut table: Vec<SlotGuard> = (1..4).map(|at_| slots.acquire(at(at_)).unwrap()).collect();
        let taken: Vec<bool> = table.iter().map(|it| it.0.authenticate(&eve)).collect();
        assert_eq!(taken, [true, true, false]);
        assert!(table[0].0.authenticate(&eve), "it is counted once");
        assert!(!table[2].0.is_authenticated(), "others may take its place");
        let bob = slots.acquire(at(1)).unwrap();
        assert!(bob.0.authenticate(&"bob".into()));
        drop(table.remove(0));
        assert!(table[1].0.authenticate(&eve), "there is room again");
        drop((table, bob));
        assert!(slots.lock().by_principal.is_empty());
    }

    #[test]
    fn one_network_is_one_address() {
        let text = |it: &str| network_prefix(it.parse().unwrap());
        assert_eq!(text("2001:db8::1"), text("2001:db8::ffff:1"));
        assert_ne!(text("2001:db8::1"), text("2001:db8:0:1::1"));
        assert_eq!(text("::ffff:192.0.2.1"), at(1));
    }
}
