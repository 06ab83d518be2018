//! The shop on a loopback port.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;

use tokio::sync::oneshot;

use super::http;
use super::shop::{Shop, ShopOptions};

/// The shop served over HTTP, on its own thread. Dropping it stops it.
#[derive(Debug)]
pub struct DemoServer {
    /// The address of the endpoint.
    pub url: String,
    /// The shop that it serves.
    pub shop: Shop,
    address: SocketAddr,
    running: Mutex<Option<Running>>,
}

#[derive(Debug)]
struct Running {
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

impl DemoServer {
    /// Starts it on loopback.
    ///
    /// # Errors
    /// No port or no thread is available.
    pub fn start(options: ShopOptions) -> io::Result<Self> {
        let shop = Shop::new(options);
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, options.port))?;
        let address = listener.local_addr()?;
        let running = run(listener, shop.clone())?;
        Ok(Self {
            url: format!("http://{address}/mcp"),
            shop,
            address,
            running: Mutex::new(Some(running)),
        })
    }

    /// Ends as if killed: open connections break, sessions are forgotten, and no client is notified.
    pub fn kill(&self) {
        let running = self.running().take();
        if let Some(Running { stop, thread }) = running {
            drop(stop);
            // A thread that panicked has reported it.
            let _panicked = thread.join();
        }
        self.shop.expire_sessions();
    }

    /// Starts again at the same address after [`Self::kill`].
    ///
    /// # Errors
    /// The port was taken in the meantime.
    pub fn restart(&self) -> io::Result<()> {
        let mut running = self.running();
        if running.is_none() {
            let listener = TcpListener::bind(self.address)?;
            *running = Some(run(listener, self.shop.clone())?);
        }
        Ok(())
    }

    fn running(&self) -> std::sync::MutexGuard<'_, Option<Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for DemoServer {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Its own runtime, so that its end breaks all open connections.
fn run(listener: TcpListener, shop: Shop) -> io::Result<Running> {
    listener.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let (stop, stopped) = oneshot::channel();
    let thread = std::thread::Builder::new()
        .name("demo-server".to_owned())
        .spawn(move || {
            runtime.block_on(serve(listener, shop, stopped));
            runtime.shutdown_background();
        })?;
    Ok(Running { stop, thread })
}

async fn serve(listener: TcpListener, shop: Shop, stopped: oneshot::Receiver<()>) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else {
        return;
    };
    let served = axum::serve(listener, http::router(shop));
    tokio::select! {
        // It ends only by being dropped.
        _ended = served => {}
        _dropped = stopped => {}
    }
}
