// Building and updating the document. Text is always a text node: there is no
// way to hand in markup.

const svgNamespace = 'http://www.w3.org/2000/svg';

// h makes an element; children are elements, texts and nothings.
export function h(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

// s is h for SVG.
export function s(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(svgNamespace, tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== undefined && value !== null && value !== false) element.setAttribute(name, value === true ? '' : value);
  }
  for (const child of children.flat(Infinity)) {
    if (child !== undefined && child !== null && child !== false && child !== '') element.append(child);
  }
  return element;
}

// update gives the element these children and touches only what differs, so that
// a text that somebody is selecting, and the focus, stay.
export function update(element, ...children) {
  const wanted = children.flat(Infinity).filter((c) => c !== undefined && c !== null && c !== false && c !== '')
    .map((c) => typeof c === 'string' ? document.createTextNode(c) : c);
  morphChildren(element, wanted);
}

function morphChildren(element, wanted) {
  wanted.forEach((child, i) => {
    const present = element.childNodes[i];
    if (!present) element.append(child);
    else if (!morph(present, child)) present.replaceWith(child);
  });
  while (element.childNodes.length > wanted.length) element.lastChild.remove();
}

function morph(present, wanted) {
  if (present.nodeType !== wanted.nodeType || present.nodeName !== wanted.nodeName) return false;
  if (present.nodeType === Node.TEXT_NODE) {
    if (present.data !== wanted.data) present.data = wanted.data;
    return true;
  }
  for (const { name } of [...present.attributes]) {
    if (!wanted.hasAttribute(name)) present.removeAttribute(name);
  }
  for (const { name, value } of wanted.attributes) {
    if (present.getAttribute(name) !== value) present.setAttribute(name, value);
  }
  morphChildren(present, [...wanted.childNodes]);
  return true;
}

export function text(element, value) {
  if (element.textContent !== value) element.textContent = value;
}
