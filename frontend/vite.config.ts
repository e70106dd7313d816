// How the page is built: into the Python package, with relative addresses, so that it works below
// any path of any application, and without anything inline, as its Content-Security-Policy asks.
import { defineConfig } from "vite";

export default defineConfig({
  base: "./",
  build: {
    outDir: "../src/redmeter/dashboard/static",
    emptyOutDir: true,
    target: "es2022",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
});
