# The dashboard is built with packages that the service does not need.
FROM node:24-slim AS dashboard
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
# No scripts: they would bring another Node and the embedded database.
RUN npm ci --ignore-scripts
COPY contract contract
COPY scripts/dashboard.ts scripts/dashboard.ts
COPY scripts/dashboard scripts/dashboard
COPY server/dashboard server/dashboard
RUN node scripts/dashboard.ts

# The service alone: the database is another container (see compose.yaml), so the embedded one stays out.
FROM node:24-slim

ENV NODE_ENV=production
WORKDIR /app

COPY package.json package-lock.json .npmrc ./
RUN npm ci --omit=dev --omit=optional && npm cache clean --force

COPY contract contract
COPY openapi openapi
COPY server server
COPY --from=dashboard /app/server/dashboard/built server/dashboard/built

# Of the image; owns nothing in it.
USER node

ENV HOST=0.0.0.0
EXPOSE 3000

HEALTHCHECK --interval=10s --timeout=5s --start-period=30s CMD [ \
  "node", "-e", \
  "fetch(`http://127.0.0.1:${process.env.PORT || 3000}/healthz`).then((a) => process.exit(a.ok ? 0 : 1), () => process.exit(1))" ]

# Without npm in between, so that signals reach the process that stops in order.
# The arguments are those of `npm start`.
CMD ["node", "--max-semi-space-size=16", "--heap-growing-percent=80", "server/main.ts"]
