// Starts the page.
import "uplot/dist/uPlot.min.css";
import { render } from "preact";
import { App } from "./app";
import { listen } from "./state/keys";
import { connect } from "./state/page";

connect();
listen();
const root = document.getElementById("page");
if (root) render(<App />, root);
